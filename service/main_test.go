package service_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/internal/child"
	"github.com/sluice-go/sluice/internal/redistest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(redistest.Tests{M: m}, goleak.IgnoreAnyFunction(child.Goroutine))
}
