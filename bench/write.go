package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sluice-go/sluice/bench/report"
)

// latest is the file of the last run: its table, with where and when.
type latest struct {
	Machine report.Machine `json:"machine"`
	Date    string         `json:"date"`
	Rows    []report.Row   `json:"rows"`
}

// write writes the files that were asked for, and says where.
func (s *session) write(stdout io.Writer) error {
	if s.Out != "" {
		text, err := json.MarshalIndent(latest{s.report.Machine, s.report.Date, s.report.Rows}, "", "  ")
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(s.Out), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(s.Out, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	if s.Docs != "" {
		if err := s.report.Page(s.Docs); err != nil {
			return err
		}
	}
	if !s.JSON {
		for _, path := range []string{s.Out, s.Docs} {
			if path != "" {
				fmt.Fprintf(stdout, "written: %s\n", path)
			}
		}
	}
	return nil
}
