//go:build !unix

package service

// nonblock is nothing here: there is no such flag.
const nonblock = 0
