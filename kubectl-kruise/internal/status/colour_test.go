package status

import "testing"

// Colours stand around what they colour, and leave the text as it is.
func TestPaint(t *testing.T) {
	const page = "CloneSet default/web\n* web-2 ██▒▒·· 2 of 3, 1 ready\nWhy:\n  paused\n"
	const want = "\x1b[1mCloneSet default/web\x1b[0m\n" +
		"* web-2 \x1b[32m██\x1b[0m\x1b[33m▒▒\x1b[0m\x1b[2m··\x1b[0m 2 of 3, 1 ready\n" +
		"\x1b[1mWhy:\x1b[0m\n  paused\n"
	if got := paint(page); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
