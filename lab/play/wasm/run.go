//go:build js && wasm

package main

import "syscall/js"

// advance(by) runs that much longer.
func (p *page) advance(args []js.Value) any {
	by := max(0, whole(args, 0))
	switch {
	case p.sim != nil:
		p.sim.Advance(p.sim.Now() + by)
	case p.trace != nil:
		p.now = min(p.now+by, p.trace.End)
	}
	return nil
}

// step() runs to the next decision; false if there is none.
func (p *page) step([]js.Value) any {
	switch {
	case p.sim != nil:
		return p.sim.Step()
	case p.trace != nil:
		next, ok := p.trace.Next(p.now)
		if ok {
			p.now = next
		}
		return ok
	}
	return false
}

// back() goes to the decision before; false if there is none.
func (p *page) back([]js.Value) any {
	switch {
	case p.sim != nil:
		return p.sim.Back()
	case p.trace != nil:
		last, ok := p.trace.Previous(p.now)
		p.now = max(last, 0)
		return ok
	}
	return false
}

// burst(size) fires requests, all at once.
func (p *page) burst(args []js.Value) any {
	if p.sim != nil {
		p.sim.Burst(whole(args, 0))
	}
	return nil
}

// redis(up) takes Redis away, or brings it back.
func (p *page) redis(args []js.Value) any {
	if p.sim != nil && len(args) > 0 {
		p.sim.Redis(args[0].Truthy())
	}
	return nil
}
