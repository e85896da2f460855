package lab

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// textWidth is the widest table that has a line for each result; a wider one has a line for each figure.
const textWidth = 110

// WriteText writes the introduction, a table of all figures that are single values, and the notes.
func (r Result) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, p := range r.Intro {
		fmt.Fprintf(&b, "%s\n", p)
	}
	if len(r.Intro) > 0 {
		b.WriteString("\n")
	}
	cells := r.table()
	if table := aligned(cells); widest(table) <= textWidth {
		b.WriteString(table)
	} else {
		b.WriteString(aligned(transposed(cells)))
	}
	for _, p := range r.Notes {
		fmt.Fprintf(&b, "\n%s\n", p)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteCSV writes a header, and a line for each result or for each of r.Lines.
func (r Result) WriteCSV(w io.Writer) error {
	rows := r.Lines
	if rows == nil {
		rows = r.Results
	}
	names := figures(rows)
	c := csv.NewWriter(w)
	_ = c.Write(append([]string{"name"}, names...))
	for _, row := range rows {
		line := []string{row.Name}
		for _, name := range names {
			line = append(line, plain(row.Figures.Get(name)))
		}
		_ = c.Write(line)
	}
	c.Flush()
	return c.Error()
}

// WriteJSON writes one object: experiment, server, params, results.
func (r Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// table is the cells of the text table, headings in the first line, names in the first column.
func (r Result) table() [][]string {
	names := figures(r.Results)
	head := []string{""}
	for _, name := range names {
		head = append(head, spaced(name))
	}
	cells := [][]string{head}
	for _, row := range r.Results {
		line := []string{spaced(row.Name)}
		for _, name := range names {
			line = append(line, shown(row.Figures.Get(name)))
		}
		cells = append(cells, line)
	}
	return cells
}

// figures are the names of all single values of the rows, in the order in which they first occur.
func figures(rows []Row) (names []string) {
	seen := map[string]bool{}
	for _, row := range rows {
		for _, f := range row.Figures {
			if !seen[f.Name] && single(f.Value) {
				seen[f.Name] = true
				names = append(names, f.Name)
			}
		}
	}
	return names
}

func single(v any) bool {
	switch v.(type) {
	case bool, int, int64, uint64, float64, string:
		return true
	}
	return false
}

// spaced is a snake_case name as people read it.
func spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }

// plain is a value as programs read it.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return number(v)
	case []float64, []int64, [][2]float64:
		return strings.Trim(fmt.Sprint(v), "[]")
	}
	return fmt.Sprint(v)
}

// shown is a value as people read it: floats to four digits, yes and no.
func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case float64:
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return "-"
		case math.Abs(v) >= 1000:
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return plain(v)
}

// aligned is a table in columns, the first to the left and the others to the right.
func aligned(cells [][]string) string {
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, line := range cells {
		var l strings.Builder
		for i, cell := range line {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				l.WriteString(cell + gap)
			} else {
				l.WriteString("  " + gap + cell)
			}
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	return b.String()
}

func transposed(cells [][]string) [][]string {
	turned := make([][]string, len(cells[0]))
	for i := range turned {
		for _, line := range cells {
			turned[i] = append(turned[i], line[i])
		}
	}
	return turned
}

func widest(text string) int {
	most := 0
	for line := range strings.Lines(text) {
		most = max(most, utf8.RuneCountInString(line)-1)
	}
	return most
}
