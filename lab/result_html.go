package lab

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed report.html
var reportText string

// WriteHTML writes one page that stands alone: the charts, the numbers, the parameters, and the command that runs the
// same again. It loads nothing.
func (r Result) WriteHTML(w io.Writer) error {
	page, err := template.New("report").Parse(reportText)
	if err != nil {
		return fmt.Errorf("lab: report: %w", err)
	}
	var charts []template.HTML
	for _, chart := range r.Charts {
		var b bytes.Buffer
		if err := chart.WriteSVG(&b); err != nil {
			return fmt.Errorf("lab: report: %w", err)
		}
		charts = append(charts, template.HTML(b.String())) // drawn here, with all text escaped
	}
	params := [][2]string{}
	for _, f := range r.Params {
		value := shown(f.Value)
		if number, ok := f.Value.(float64); ok {
			value = plain(number)
		}
		params = append(params, [2]string{spaced(f.Name), value})
	}
	var out bytes.Buffer
	if err := page.Execute(&out, map[string]any{
		"Result": r, "Charts": charts, "Params": params, "Table": transposed(r.table()),
	}); err != nil {
		return fmt.Errorf("lab: report: %w", err)
	}
	_, err = w.Write(out.Bytes())
	return err
}
