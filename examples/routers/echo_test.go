package routers_test

import (
	"testing"

	"github.com/sluice-go/sluice/examples/routers"
)

func TestEcho(t *testing.T) { testRouter(t, routers.Echo) }

func ExampleEcho() {
	show(limited(2, routers.Echo))
	// Output:
	// 200 "users";r=1;t=1800
	// user 7
	// 200 "users";r=0;t=3600
	// user 8
	// 429 "users";r=0;t=1800
}
