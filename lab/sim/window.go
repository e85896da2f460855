package sim

// largest is the most units in any window of a length that slides over times which never step back.
type largest struct {
	reach int64 // µs between the first and the last unit of a window: its length if closed, 1 µs less if half-open
	seen  entries
	most  int64
	from  int64 // when the window with the most begins, µs
}

func (w *largest) add(at, n int64) {
	w.seen.forget(at - w.reach - 1)
	w.seen.add(at, n)
	if w.seen.sum > w.most {
		w.most, w.from = w.seen.sum, w.seen.first()
	}
}

// clone is a copy that shares nothing.
func (w largest) clone() largest {
	w.seen.ring = append([]entry(nil), w.seen.ring...)
	return w
}
