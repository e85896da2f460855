package routers_test

import (
	"testing"

	"github.com/sluice-go/sluice/examples/routers"
)

func TestChi(t *testing.T) { testRouter(t, routers.Chi) }

func ExampleChi() {
	show(limited(2, routers.Chi))
	// Output:
	// 200 "users";r=1;t=1800
	// user 7
	// 200 "users";r=0;t=3600
	// user 8
	// 429 "users";r=0;t=1800
}
