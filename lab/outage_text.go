package lab

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteText writes two tables: a line for each variant, and a line for each second.
//
// "lost" is what was asked, would have kept the bound, and was denied; "in Redis" the part of the decisions made there.
func (r OutageResult) WriteText(w io.Writer) error {
	p := &r.Params
	var b strings.Builder
	fmt.Fprintf(&b, "%d instances on %s, limit %v for all of them, demand %g times that%s.\n", p.Instances, r.Server, p.Limit, p.Demand, p.skewed())
	fmt.Fprintf(&b, "Redis away (%s) %s of %v. Bound: burst + rate·t = %.0f.\n\n", p.How, list(p.Outages()), p.Duration, p.bound())

	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "admitted\tof bound\tof asked\tworst second\tof limit\tlost\tin Redis\tslowest\terrors\t  variant")
	for _, v := range r.Results {
		fmt.Fprintf(t, "%d\t%.3f\t%.3f\t%d at %ds\t%.2f\t%.0f\t%.0f%%\t%.1f ms\t%d\t  %s\n", v.Admitted, v.Ratio, part(v.Admitted, v.Asked),
			v.WorstSecond, v.WorstAt, float64(v.WorstSecond)/p.rate(), v.Lost, 100*part(v.Shared, v.Asked), v.Slowest, v.Errors, v.Name)
	}
	_ = t.Flush()

	fmt.Fprintf(&b, "\nAdmitted per second, limit %.4g:\n\n", p.rate())
	fmt.Fprint(t, "second\t")
	for _, v := range r.Results {
		fmt.Fprintf(t, "%s\t", v.Name)
	}
	fmt.Fprintln(t, "  Redis")
	for s := range seconds(r) {
		fmt.Fprintf(t, "%d\t", s)
		for _, v := range r.Results {
			fmt.Fprintf(t, "%d\t", v.PerSecond[s])
		}
		fmt.Fprintf(t, "  %s\n", [...]string{"", "partly away", "away"}[presence(p, s)])
	}
	_ = t.Flush()
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// part is n ÷ of, and 0 of none.
func part(n, of int64) float64 { return float64(n) / float64(max(1, of)) }

// seconds is how many seconds the run has, the last perhaps shorter.
func seconds(r OutageResult) int { return int((r.Params.Duration + time.Second - 1) / time.Second) }

// presence is 0 where Redis is there in all of the second, 1 where it is away in a part of it, 2 where in all.
func presence(p *OutageParams, second int) int {
	switch away, length := p.away(second), min(1, p.Duration.Seconds()-float64(second)); {
	case away <= 0:
		return 0
	case away < length-1e-9:
		return 1
	}
	return 2
}

// skewed is "" or how the demand is spread.
func (p *OutageParams) skewed() string {
	if p.Skew == nil {
		return ""
	}
	parts := make([]string, len(p.Skew))
	for i, w := range p.Skew {
		parts[i] = number(w)
	}
	return " as " + strings.Join(parts, ":")
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
