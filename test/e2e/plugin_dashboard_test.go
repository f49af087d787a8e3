//go:build e2e

package e2e

import (
	"bufio"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// testDashboard serves the page until it is interrupted, for a namespace and for all of them.
func (p *plugin) testDashboard(t *testing.T) {
	namespace := p.Namespace(t)
	for _, words := range [][]string{{"dashboard", "--port=0"}, {"dashboard", "-A", "--write"}} {
		p.mu.Lock()
		p.ran = append(p.ran, words)
		p.mu.Unlock()
		command := exec.CommandContext(t.Context(), p.binary, append([]string{"-n", namespace}, words...)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig)
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		url := ""
		for url == "" && lines.Scan() {
			url = regexp.MustCompile(`http://\S+`).FindString(lines.Text())
		}
		page := read(t, url)
		if !strings.Contains(page, "<html") {
			t.Errorf("kubectl kruise %s serves %q", strings.Join(words, " "), page)
		}
		if err := command.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, out)
		if err := command.Wait(); err != nil {
			t.Errorf("kubectl kruise %s, after a signal: %v", strings.Join(words, " "), err)
		}
	}
}

// read reads a page as a browser does, which follows redirects and keeps cookies.
func read(t *testing.T, url string) string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Jar: jar}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, answer.Status, err)
	}
	return string(text)
}
