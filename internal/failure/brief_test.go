package failure_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kruisekit/kruisekit/internal/failure"
)

func TestBrief(t *testing.T) {
	short := errors.New("spec.replicas: must not be negative")
	if got := failure.Brief(short); !errors.Is(got, short) {
		t.Errorf("a short error became %v", got)
	}
	if got := failure.Brief(nil); got != nil {
		t.Errorf("no error became %v", got)
	}
	long := failure.Brief(errors.New("x" + strings.Repeat("ü", 5000))).Error()
	if len(long) > 1003 || !utf8.ValidString(long) || !strings.HasPrefix(long, "xüü") || !strings.HasSuffix(long, "ü...") {
		t.Errorf("a long error has %d bytes, valid %t, ends in %q", len(long), utf8.ValidString(long), long[len(long)-10:])
	}
}
