package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/bench/contender"
	"github.com/sluice-go/sluice/bench/load"
)

// options are the command line, as kong reads it.
type options struct {
	Full       bool          `help:"Measure everything: all works, growth of keys and callers, a cluster, a shared client. About 15 minutes."`
	Only       []string      `help:"Measure these works alone; of the rest, nothing." placeholder:"WORK"`
	Contenders []string      `help:"Measure these contenders alone, and redis_rate, which ratios are against." placeholder:"NAME"`
	Rounds     int           `help:"Rounds of each contender at each work; 0: 5, with --full 9."`
	Round      time.Duration `help:"Length of a round of one contender; 0: 250ms, with --full 500ms."`
	Out        string        `help:"Write the table as JSON." type:"path" placeholder:"FILE"`
	Docs       string        `help:"Write performance.md and its charts." type:"path" placeholder:"FOLDER"`
	JSON       bool          `help:"Print all figures as JSON, not as tables."`
	Strict     bool          `help:"Exit with 1 if a bar does not hold."`
	Pin        bool          `help:"Give redis-server and the callers a core each." default:"true" negatable:""`
	List       bool          `help:"Print the names of works and contenders."`
}

// check fills in defaults and refuses names that there are not.
func (o *options) check() error {
	if o.Rounds < 0 || o.Round < 0 {
		return fmt.Errorf("--rounds %d, --round %v: want at least 0", o.Rounds, o.Round)
	}
	if o.Rounds == 0 {
		o.Rounds = 5
		if o.Full {
			o.Rounds = 9
		}
	}
	if o.Round == 0 {
		o.Round = 250 * time.Millisecond
		if o.Full {
			o.Round = 500 * time.Millisecond
		}
	}
	if o.Docs != "" && o.part() {
		return fmt.Errorf("--docs with --only or --contenders: the page needs all of them")
	}
	for _, name := range o.Only {
		if !slices.ContainsFunc(load.Works(), func(w load.Work) bool { return w.Name == name }) {
			return fmt.Errorf("--only %q: no such work; --list prints them", name)
		}
	}
	for _, name := range o.Contenders {
		if !slices.ContainsFunc(everyone(), func(c contender.Contender) bool { return c.Name == name }) {
			return fmt.Errorf("--contenders %q: no such contender; --list prints them", name)
		}
	}
	return nil
}

// part tells whether some works or contenders are left out.
func (o *options) part() bool { return len(o.Only) > 0 || len(o.Contenders) > 0 }

// works are those to measure. The short form has those that bars are about.
func (o *options) works() []load.Work {
	short := strings.Fields("many-128 hot-128 denied-128 hot-1 many-1 many-512")
	var works []load.Work
	for _, w := range load.Works() {
		if slices.Contains(o.Only, w.Name) || len(o.Only) == 0 && (o.Full || slices.Contains(short, w.Name)) {
			works = append(works, w)
		}
	}
	return works
}

// contenders are those to measure at every work.
func (o *options) contenders() []contender.Contender {
	if len(o.Contenders) == 0 {
		if o.Full {
			return everyone()
		}
		return contender.All()
	}
	return slices.DeleteFunc(everyone(), func(c contender.Contender) bool {
		return c.Name != contender.Base && !slices.Contains(o.Contenders, c.Name)
	})
}

func everyone() []contender.Contender { return append(contender.All(), contender.Switched()...) }

func (o *options) list(w io.Writer) {
	fmt.Fprintln(w, "Works:")
	for _, k := range load.Works() {
		fmt.Fprintf(w, "  %-18s %s\n", k.Name, k.Text)
	}
	fmt.Fprintln(w, "Contenders:")
	for _, c := range everyone() {
		fmt.Fprintf(w, "  %-18s %s\n", c.Name, c.About)
	}
}
