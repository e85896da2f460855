package service_test

import (
	"os"
	"regexp"
	"testing"
)

// documentedRights are those of the ACL line in docs/operations.md.
func documentedRights(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`ACL SETUSER sluice reset on >PASSWORD ~sluice:\* (.*)`).FindSubmatch(page)
	if line == nil {
		t.Fatal("docs/operations.md has no ACL line")
	}
	return string(line[1])
}
