package sluice

// Waiting tells how many subjects have callers that wait, and how many callers wait on the subject.
func (l *Limiter) Waiting(subject string) (subjects, callers int) {
	w := l.waiting
	w.mu.Lock()
	defer w.mu.Unlock()
	if q := w.queues[subject]; q != nil {
		callers = q.callers.Len()
	}
	return len(w.queues), callers
}
