package routers

import (
	"fmt"
	"net/http"
	"time"
)

// Events sends an event ten times a second until the client leaves. http.ResponseController reaches the connection
// through the limits and the router.
func Events(w http.ResponseWriter, r *http.Request) {
	control, tick := http.NewResponseController(w), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	w.Header().Set("Content-Type", "text/event-stream")
	for n := 1; ; n++ {
		if err := control.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "data: %d\n\n", n)
		if err := control.Flush(); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}
