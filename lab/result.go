package lab

import (
	"bytes"
	"encoding/json"
	"math"
)

// Result is what an experiment found, in the form that all experiments share: [Result.WriteText], [Result.WriteCSV],
// [Result.WriteJSON] and [Result.WriteHTML] write it.
type Result struct {
	Experiment string   // the name of its command, such as "boundary"
	Title      string   // what the experiment asks, in a line
	Server     string   // what decided, such as "redis-server 7.0.15"; "": the algorithms themselves, in virtual time
	Intro      []string // paragraphs before the table: what was run
	Params     Fields   // the choices, with the defaults filled in
	Results    []Row
	Lines      []Row    // what CSV has instead of Results, where it is finer; nil: Results
	Notes      []string // paragraphs after the table: how to read it
	Charts     []Chart
	Command    string // runs the same again; set by the one who ran it
}

// Row is the figures of one thing that was compared.
type Row struct {
	Name    string // snake_case, such as "token_bucket"
	Figures Fields
}

// Field is a named value. A name is in snake_case and ends in its unit where it has one: "p99_ms", "state_bytes".
// A value is a bool, int, int64, float64 or string; or a []int64, []float64 or [][2]float64, which only JSON shows.
// A float that is no finite number is null in JSON, and "-" elsewhere.
type Field struct {
	Name  string
	Value any
}

// Fields are written in their order.
type Fields []Field

// Get returns the value of a field, nil if there is none.
func (f Fields) Get(name string) any {
	for _, field := range f {
		if field.Name == name {
			return field.Value
		}
	}
	return nil
}

// Row returns the row of a name; the zero Row if there is none.
func (r Result) Row(name string) Row {
	for _, row := range r.Results {
		if row.Name == name {
			return row
		}
	}
	return Row{}
}

// Number returns a figure as a float; NaN if there is none, or it is no number.
func (r Row) Number(figure string) float64 {
	switch v := r.Figures.Get(figure).(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return math.NaN()
}

// MarshalJSON writes an object with the fields in their order.
func (f Fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, field := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(field.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(finite(field.Value))
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// finite is v, and nil for a float that JSON cannot hold.
func finite(v any) any {
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return nil
	}
	return v
}

// MarshalJSON writes an object of the name and the figures.
func (r Row) MarshalJSON() ([]byte, error) {
	return json.Marshal(append(Fields{{"name", r.Name}}, r.Figures...))
}

// MarshalJSON is the form {"experiment": …, "server": …, "params": {…}, "results": [{"name": …, …}, …]}. There is no
// server where the algorithms ran in virtual time.
func (r Result) MarshalJSON() ([]byte, error) {
	results := r.Results
	if results == nil {
		results = []Row{}
	}
	return json.Marshal(struct {
		Experiment string `json:"experiment"`
		Server     string `json:"server,omitempty"`
		Params     Fields `json:"params"`
		Results    []Row  `json:"results"`
	}{r.Experiment, r.Server, r.Params, results})
}
