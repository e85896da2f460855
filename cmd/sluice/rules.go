package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/policy/rulefile"
	"github.com/sluice-go/sluice/service"
	"github.com/sluice-go/sluice/store/redis"
)

// loadRules reads a rule file for a command. One that is faulty or can't be read is misuse: there is no answer.
func loadRules(command, path string) (policy.Config, error) {
	config, err := rulefile.Load(path)
	if faults, ok := errors.AsType[rulefile.Errors](err); ok {
		return config, misuse{faults}
	}
	if err != nil {
		return config, misuse{fmt.Errorf("sluice: %s: %w", command, err)}
	}
	return config, nil
}

// compileRules is loadRules for a command that matches requests, which takes the file's secrets.
func compileRules(command, path string) (*policy.Rules, error) {
	config, err := loadRules(command, path)
	if err != nil {
		return nil, err
	}
	rules, err := policy.New(config)
	if err != nil {
		return nil, misuse{fmt.Errorf("sluice: %s: %s: %w", command, path, err)}
	}
	return rules, nil
}

// openRedis opens the Redis of rules for a command that can't do without.
func openRedis(command string, rules *policy.Rules) (*redis.Store, error) {
	store, err := service.Direct(rules.Config())
	if err != nil {
		err = fmt.Errorf("sluice: %s: %w", command, err)
	}
	if errors.Is(err, service.ErrNoRedis) {
		err = misuse{err}
	}
	return store, err
}

// findLimit finds a limit by the name of its rule, or by rule/limit where the rule has several. The error names what
// there is.
func findLimit(rules *policy.Rules, name string) (*policy.Limit, error) {
	ruleName, limitName, named := strings.Cut(name, "/")
	var have []string
	for _, rule := range rules.All() {
		have = append(have, rule.Name)
		if rule.Name != ruleName {
			continue
		}
		var limits []string
		for i := range rule.Limits {
			l := &rule.Limits[i]
			if named && l.Name == limitName || !named && l.KeyRule == rule.Name {
				return l, nil
			}
			limits = append(limits, rule.Name+"/"+l.Name)
		}
		if !named {
			return nil, fmt.Errorf("rule %q has several limits: want one of %s", name, strings.Join(limits, ", "))
		}
		return nil, fmt.Errorf("%q: the rule has no such limit: want one of %s", name, strings.Join(limits, ", "))
	}
	return nil, fmt.Errorf("%q: no such rule: want one of %s", ruleName, strings.Join(have, ", "))
}

// keyOf is what the commands ask about: a subject of a limit. text is the subject as a request gives it, or as a key has
// it where asKey says so. No error holds it, since it may be a secret.
func keyOf(l *policy.Limit, text string, asKey bool) (sluice.Key, error) {
	switch {
	case asKey && text == "":
		return sluice.Key{}, errors.New("SUBJECT is missing: want it as in keys")
	case asKey:
		return sluice.Key{Rule: l.KeyRule, Subject: text}, nil
	case text == "" && l.SubjectName == "global":
		text = "global"
	}
	subject, err := l.SubjectKey(text)
	return sluice.Key{Rule: l.KeyRule, Subject: subject}, err
}

// seconds is a duration in JSON: seconds, to the µs. Never is left out.
func seconds(d time.Duration) *float64 {
	if d == sluice.Never {
		return nil
	}
	s := float64(d.Microseconds()) / 1e6
	return &s
}

// wait is a duration for people, in four digits or so.
func wait(d time.Duration) string {
	switch {
	case d == sluice.Never:
		return "never"
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Minute:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
