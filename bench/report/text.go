package report

import (
	"fmt"
	"io"
)

// Text prints the report for a terminal: the details first, and last the table of promises.
func (r *Report) Text(w io.Writer) {
	m := r.Machine
	fmt.Fprintf(w, "%s, %d cores, %s, %s, %s\n%s\n", m.CPU, m.Cores, m.System, m.Go, m.Redis, r.Pinned)
	works := r.Works
	if r.Forms != nil {
		works = append(works[:len(works):len(works)], *r.Forms)
	}
	works = append(works[:len(works):len(works)], r.Sizes...)
	if r.Cluster != nil {
		works = append(works[:len(works):len(works)], *r.Cluster)
	}
	for _, k := range works {
		fmt.Fprintf(w, "\n%s: %s\n", k.Name, k.Text)
		both := k.speed()
		for i, row := range k.costs().rows {
			both.rows[i] = append(both.rows[i], row[1:]...)
		}
		both.head = append(both.head, k.costs().head[1:]...)
		both.text(w)
		for _, line := range k.faults() {
			fmt.Fprintln(w, line)
		}
	}
	for _, t := range []*table{r.algorithms(), r.traffic(), r.memory(), r.local(), r.localMemory(), r.others(), r.bars()} {
		if len(t.rows) > 0 {
			fmt.Fprintln(w)
			t.text(w)
		}
	}
}
