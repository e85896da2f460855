package failover

import "github.com/sluice-go/sluice"

// Remembered is how many keys a guard remembers.
func Remembered(s sluice.Store) int {
	n := 0
	m := s.(*guard).memory
	for i := range m.parts {
		m.parts[i].mu.Lock()
		n += len(m.parts[i].marks)
		m.parts[i].mu.Unlock()
	}
	return n
}
