package redis

import "strings"

// slots is how many slots a cluster has, each on one of its nodes.
const slots = 16384

// slot is the slot of a key, by its hash tag: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
func slot(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc = crc<<8 ^ crc16[byte(crc>>8)^key[i]]
	}
	return int(crc) % slots
}

// crc16 is the table of CRC-16/XMODEM, polynomial 0x1021.
var crc16 = func() (t [256]uint16) {
	for i := range t {
		c := uint16(i) << 8
		for range 8 {
			if c&0x8000 != 0 {
				c = c<<1 ^ 0x1021
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return t
}()
