//go:build unix

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Upgrades under load: every request is answered, by one version and later by the other.
func TestHandover(t *testing.T) {
	application := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-time.NewTimer(5 * time.Millisecond).C // so that requests are under way at each stop
		_, _ = fmt.Fprint(w, "hello")
	}))
	defer application.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	common := []string{
		"--socket=" + filepath.Join(t.TempDir(), "listener"), "--listen=" + address, "--to=" + application.URL,
	}
	start := func(version string) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, append([]string{"serve"}, common...), version) }()
		if err := run(t.Context(), append([]string{"migrate"}, common...), version); err != nil {
			t.Fatal(err)
		}
		return func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("version %s: %v", version, err)
			}
		}
	}
	stop := start("1")
	load := newLoad(t, "http://"+address)
	for _, version := range []string{"2", "3", "4"} {
		before := load.count()
		load.until(t, before+100)
		next := start(version)
		stop()
		stop = next
	}
	load.until(t, load.count()+100)
	load.end(t)
	stop()
	for _, version := range []string{"1", "2", "3", "4"} {
		if load.by[version] == 0 {
			t.Errorf("version %s answered nothing: %v", version, load.by)
		}
	}
	t.Logf("answered by version: %v", load.by)
}

// The one that idles is not waited for, and no wait lasts for ever.
func TestMigrate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "listener")
	if err := migrate(t.Context(), path, "0"); err != nil {
		t.Errorf("idle: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := migrate(ctx, path, "7"); err == nil {
		t.Error("nobody serves, and the hook says that version 7 does")
	}
	for _, args := range [][]string{
		nil, {"dance"}, {"serve", "--to=%"}, {"serve", "--listen=nowhere:0:0"}, {"idle", "--unknown"},
	} {
		if err := run(t.Context(), args, "1"); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// load asks all the time, over connections that are kept and over new ones.
type load struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	lock    sync.Mutex
	by      map[string]int
	failed  []error
}

func newLoad(t *testing.T, url string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel, by: map[string]int{}}
	for i := range 4 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
		l.running.Add(1)
		go func() {
			defer l.running.Done()

			for ctx.Err() == nil {
				version, err := ask(client, url)
				l.lock.Lock()
				l.by[version]++
				if err != nil {
					l.failed = append(l.failed, err)
				}
				l.lock.Unlock()
			}
		}()
	}
	return l
}

func ask(client *http.Client, url string) (version string, err error) {
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("answered %s", response.Status)
	}
	return response.Header.Get(Header), nil
}

func (l *load) count() int {
	l.lock.Lock()
	defer l.lock.Unlock()
	n := 0
	for _, by := range l.by {
		n += by
	}
	return n
}

func (l *load) until(t *testing.T, n int) {
	t.Helper()
	again, end := time.NewTicker(time.Millisecond), time.NewTimer(20*time.Second)
	defer again.Stop()
	for l.count() < n {
		select {
		case <-end.C:
			t.Fatalf("%d requests were answered, want %d", l.count(), n)
		case <-again.C:
		}
	}
}

func (l *load) end(t *testing.T) {
	t.Helper()
	l.cancel()
	l.running.Wait()
	for _, err := range l.failed {
		t.Errorf("a request failed: %v", err)
	}
}
