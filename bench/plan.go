package main

import "time"

// How long the parts of a run are planned to take, on a machine that has little else to do.

const (
	memoryTime      = 5 * time.Second  // of keys in Redis
	localMemoryTime = 12 * time.Second // of keys in process
	clusterTime     = 3 * time.Second  // to start one
	localRound      = 100 * time.Millisecond
	localContenders = 9
	millionTime     = 15 * time.Second // to take a million keys once
)

// workTime is of so many contenders at a work.
func (o *options) workTime(contenders int) time.Duration {
	each := o.Round + o.Round/20 + 15*time.Millisecond // starting, collecting garbage, asking the server
	return time.Duration(contenders) * (time.Duration(o.Rounds)*each + 250*time.Millisecond)
}

// localRounds are the rounds in process, which are short.
func (o *options) localRounds() int { return o.Rounds + 4 }

// localTime is of all contenders in process, with so many goroutines.
func (o *options) localTime() time.Duration {
	return time.Duration(o.localRounds()*localContenders) * (localRound + 10*time.Millisecond)
}

// expected is of the whole run.
func (o *options) expected() time.Duration {
	total := time.Duration(len(o.works())) * o.workTime(len(o.contenders()))
	if o.part() {
		return total
	}
	total += memoryTime + o.workTime(2) + 2*o.localTime() + localMemoryTime
	if o.Full {
		total += 2*o.workTime(5) + 4*o.workTime(2) + 2*millionTime + clusterTime + 2*o.workTime(4)
	}
	return total
}
