//go:build simulated

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

// written is what the demo has written so far.
type written struct {
	mu   sync.Mutex
	text strings.Builder
	// until is what the demo waits for.
	until string
	done  chan struct{}
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	if w.done != nil && strings.Contains(w.text.String(), w.until) {
		close(w.done)
		w.done = nil
	}
	return len(p), nil
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// started is a demo that runs, and how it ends.
type started struct {
	out   *written
	seen  chan struct{} // closed when the words were written
	ended chan error
	stop  context.CancelFunc
	dir   string
}

// start runs the demo, waiting for some words.
func start(t *testing.T, words string) started {
	t.Helper()
	cache, err := binaries.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cache.Paths(binaries.Demo); errors.Is(err, binaries.ErrMissing) &&
		os.Getenv("KRUISEKIT_REQUIRE_CLUSTER") != "1" {
		t.Skip(err) // building takes minutes
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan struct{})
	s := started{out: &written{until: words, done: seen}, seen: seen, ended: make(chan error, 1), stop: cancel, dir: dir}
	go func() { s.ended <- run(ctx, s.out) }()
	return s
}

// until waits for the words.
func (s started) until(t *testing.T) {
	t.Helper()
	select {
	case <-s.seen:
	case err := <-s.ended:
		t.Fatalf("ended before it was asked to: %v\n%s", err, s.out)
	case <-time.After(3 * time.Minute): //nolint:forbidigo // a bound, and nothing waits for it
		t.Fatalf("not there yet:\n%s", s.out)
	}
}

// nothingLeft looks for files and processes of a demo that has ended.
func (s started) nothingLeft(t *testing.T) {
	t.Helper()
	if files, err := os.ReadDir(s.dir); err != nil || len(files) > 0 {
		t.Errorf("left: %v %v", files, err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range commands {
		if command, err := os.ReadFile(path); err == nil && strings.Contains(string(command), s.dir) {
			t.Errorf("still runs: %q", command)
		}
	}
}

// The whole demo: what it promises stands in its summary, and nothing is left.
func TestDemo(t *testing.T) {
	s := start(t, "API writes per pod")
	s.until(t)
	if err := <-s.ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	out := s.out.String()
	t.Log(out)

	row := regexp.MustCompile(
		`(?m)^  (\w+(?:,? [\w ]+\w)?) +(\d+) of (\d+) +(\d+) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$`)
	want := map[string][4]string{ // kept, of, restarted, new
		"new image: CloneSet, first half":                {"30", "30", "15", "0"},
		"new image: CloneSet, the rest":                  {"30", "30", "15", "0"},
		"new image: annotated Deployment":                {"30", "30", "30", "0"},
		"new image: Deployment":                          {"0", "30", "0", "30"},
		"new environment variable: CloneSet":             {"0", "30", "0", "30"},
		"new environment variable: annotated Deployment": {"0", "30", "0", "30"},
		"new environment variable: Deployment":           {"0", "30", "0", "30"},
	}
	_, table, _ := strings.Cut(out, "API writes per pod")
	for _, part := range strings.Split(table, "\nA ")[1:] {
		title, _, _ := strings.Cut(part, "\n")
		for _, m := range row.FindAllStringSubmatch(part, -1) {
			name := title + ": " + m[1]
			if got := [4]string(m[2:6]); got != want[name] {
				t.Errorf("%s: kept, of, restarted, new are %v, want %v", name, got, want[name])
			}
			delete(want, name)
			took, onPods, all := number(t, m[6]), number(t, m[7]), number(t, m[10])
			if took <= 0 || took > 60 || all <= onPods {
				t.Errorf("%s: %v seconds, %v writes to pods of %v", name, took, onPods, all)
			}
			if strings.Contains(m[1], ",") && (onPods < 2 || onPods > 4) {
				t.Errorf("%s: %v writes to each pod, want at most 4: not ready, the image, ready, and its state", name, onPods)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("not in the summary: %v", want)
	}
	s.nothingLeft(t)
}

// Ctrl-C in the middle of it leaves nothing behind.
func TestInterrupted(t *testing.T) {
	for name, words := range map[string]string{"while it starts": "Starting etcd", "while it plays": "[2/4]"} {
		t.Run(name, func(t *testing.T) {
			s := start(t, words)
			s.until(t)
			s.stop()
			if err := <-s.ended; !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want to hear that it was interrupted\n%s", err, s.out)
			}
			s.nothingLeft(t)
		})
	}
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
