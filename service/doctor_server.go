package service

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// server is what a server says to be.
type server struct {
	name    string // "redis" or "valkey"; "": it does not say
	version string
	cluster bool
}

// asks fills what the checks are made of: the server's own words about itself.
func (d *doctor) asks(ctx context.Context) {
	switch c := d.client.(type) {
	case *goredis.Client:
		d.node = c
	case *goredis.ClusterClient:
		d.version.cluster = true
		d.node, _ = c.MasterForKey(ctx, d.store.KeyOf(d.ask(d.strategies()[0], "doctor")))
	}
	if d.node == nil {
		return
	}
	if reply, err := d.node.Do(ctx, "hello").Result(); err == nil {
		fields := pairsOf(reply)
		d.version.name, d.version.version = fields["server"], fields["version"]
		d.version.cluster = d.version.cluster || fields["mode"] == "cluster"
	}
	d.info = d.askInfo(ctx, "server", "memory", "stats", "replication")
	if v := d.info["redis_version"]; d.version.version == "" && v != "" {
		d.version.name, d.version.version = "redis", v
	}
	if v := d.info["valkey_version"]; v != "" {
		d.version.name, d.version.version = "valkey", v
	}
}

// askInfo returns the fields of sections of INFO, or nil if the user may not ask.
func (d *doctor) askInfo(ctx context.Context, sections ...string) map[string]string {
	fields := map[string]string{}
	for _, section := range sections {
		text, err := d.node.Info(ctx, section).Result()
		if err != nil {
			return nil
		}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				fields[name] = value
			}
		}
	}
	return fields
}

// pairsOf reads a reply of names and values, which is a map or a flat list.
func pairsOf(reply any) map[string]string {
	fields := map[string]string{}
	switch r := reply.(type) {
	case map[any]any:
		for name, value := range r {
			fields[fmt.Sprint(name)] = fmt.Sprint(value)
		}
	case []any:
		for i := 0; i+1 < len(r); i += 2 {
			fields[fmt.Sprint(r[i])] = fmt.Sprint(r[i+1])
		}
	}
	return fields
}

// The versions of Redis that the scripts are written for.
const (
	oldestRedis = 5
	newestRedis = 8
)

func (d *doctor) checkVersion() {
	name, version := d.version.name, d.version.version
	if version == "" {
		d.warn("version", "not known: the server answers neither HELLO nor INFO", "see that it is Redis 5 to 8, or Valkey")
		return
	}
	first, _, _ := strings.Cut(version, ".")
	major, err := strconv.Atoi(first)
	switch {
	case name == "valkey":
		d.ok("version", "Valkey %s", version)
	case name != "redis" || err != nil:
		d.warn("version", fmt.Sprintf("%s %s", name, version), "want Redis 5 to 8, or Valkey: others were not tried")
	case major < oldestRedis:
		d.fail("version", "Redis "+version, "want at least Redis 5: older ones repeat scripts on replicas, which a script that reads the time must not be")
	case major > newestRedis:
		d.warn("version", "Redis "+version, "newer than what was tried: run the conformance suite on it first")
	default:
		d.ok("version", "Redis %s", version)
	}
}

// eviction tells what the server does when its memory is full: a key that is evicted is a fresh burst.
func (d *doctor) eviction(ctx context.Context) {
	if d.info == nil {
		d.warn("eviction", "not known: the user may not ask for INFO", noInfo)
		return
	}
	what, most, used := d.info["maxmemory_policy"], number(d.info["maxmemory"]), number(d.info["used_memory"])
	found := fmt.Sprintf("maxmemory-policy %s, %.1f MB in use", what, float64(used)/1e6)
	if most > 0 {
		found += fmt.Sprintf(" of %.1f MB", float64(most)/1e6)
	} else {
		found += ", no maxmemory"
	}
	evicted := number(d.info["evicted_keys"])
	if evicted > 0 {
		found += fmt.Sprintf(", %d keys evicted since it started", evicted)
	}
	const nearlyFull = 0.75
	switch {
	case what == "":
		d.warn("eviction", "not known: INFO has no maxmemory_policy", noInfo)
	case what != "noeviction" && what != "volatile-ttl":
		d.warn("eviction", found, "an evicted key is a fresh burst: set maxmemory-policy noeviction, or volatile-ttl")
	case evicted > 0 && what != "noeviction":
		d.warn("eviction", found, "an evicted key is a fresh burst: give it more memory, or keep others' keys out of it")
	case most > 0 && float64(used) > nearlyFull*float64(most):
		d.warn("eviction", found, "nearly full: give it more memory, or find out who fills it")
	case most == 0:
		d.warn("eviction", found, "a flood of invented subjects ends with the machine's memory: set maxmemory to twice the need")
	default:
		d.ok("eviction", "%s", found)
	}
}

const noInfo = "run the doctor as a user who has +info, too"

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// replicas tells how far the servers that would take over are behind.
func (d *doctor) replicas() {
	if d.info == nil {
		d.warn("replicas", "not known: the user may not ask for INFO", noInfo)
		return
	}
	if d.info["role"] == "slave" {
		d.fail("replicas", "this is a replica, which takes no writes", "let the URL name the master, or the sentinels: redis+sentinel://")
		return
	}
	count := number(d.info["connected_slaves"])
	if count == 0 {
		d.ok("replicas", "none: if the server is lost, everybody has a fresh burst, once")
		return
	}
	offset := number(d.info["master_repl_offset"])
	var behind, lag int64
	var offline []string
	for i := range count {
		fields := map[string]string{}
		for field := range strings.SplitSeq(d.info[fmt.Sprintf("slave%d", i)], ",") {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		if fields["state"] != "online" {
			offline = append(offline, fields["ip"]+":"+fields["port"]+" is "+fields["state"])
			continue
		}
		behind, lag = max(behind, offset-number(fields["offset"])), max(lag, number(fields["lag"]))
	}
	found := fmt.Sprintf("%d, at most %d bytes and %v behind", count, behind, time.Duration(lag)*time.Second)
	const slow = 2 // s; a replica tells the master once a second how far it is
	switch {
	case len(offline) > 0:
		d.warn("replicas", fmt.Sprintf("%d, of which %s", count, strings.Join(offline, ", ")), "after a failover, what was charged meanwhile can be spent again: let it catch up")
	case lag > slow:
		d.warn("replicas", found, "after a failover, what was charged in that time can be spent again: look at the network and the replicas' load")
	default:
		d.ok("replicas", "%s", found)
	}
}
