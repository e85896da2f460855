// Package browser tests the playground in a real browser, headless Chromium. It is a module of its own, so that
// nobody who limits rates downloads a browser's protocol.
package browser
