package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table is rows of cells under a head. The first column is text, the others are numbers.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// text writes aligned columns.
func (t *table) text(w io.Writer) {
	width := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range append([][]string{t.head}, t.rows...) {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString(cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// markdown writes the same as a table of Markdown.
func (t *table) markdown(w io.Writer) {
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = "--:"
	}
	rule[0] = "---"
	fmt.Fprintf(w, "|%s|\n", strings.Join(rule, "|"))
	for _, row := range t.rows {
		line(row)
	}
}

// number writes three significant digits, and large numbers with commas.
func number(v float64) string {
	switch a := abs(v); {
	case v == 0:
		return "0"
	case a >= 999.5:
		return commas(int64(v + 0.5))
	case a >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case a >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.0095:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

func abs(v float64) float64 { return max(v, -v) }

func commas(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
