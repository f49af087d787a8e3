//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/test/demo/svg"
)

var pluginPictures = flag.String("plugin-pictures", "",
	"the directory that TestPluginPictures writes pictures of terminals to; empty skips the test")

// TestPluginPictures takes the pictures of the document from a terminal.
func TestPluginPictures(t *testing.T) {
	if *pluginPictures == "" {
		t.Skip("writes to the tree: run make plugin-pictures")
	}
	p := newPlugin(t)
	s := &space{p, "shop"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if err := p.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Client.Delete(context.WithoutCancel(t.Context()), namespace) })
	manifest := strings.Replace(clonesOf("web", 5), "maxUnavailable: 1", "maxUnavailable: 2", 1)
	manifest = strings.Replace(manifest, "replicas: 5", "replicas: 5\n  minReadySeconds: 2", 1)
	s.apply(t, manifest)
	s.pods(t, "web", 5)
	s.do(t, "wait", "cloneset/web", "--for=jsonpath={.status.availableReplicas}=5", "--timeout=1m")

	changed := strings.NewReplacer("plugin/web:1", "plugin/web:2", "maxUnavailable: 2", "maxUnavailable: 2, partition: 1").
		Replace(manifest)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "new.yaml"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	s.shoot(t, dir, "plan", "The forecast of a change: two batches of pods restart in place, and one pod stays", "plan",
		"-f", "new.yaml")

	s.do(t, "set", "image", "cloneset/web", "app=plugin/web:2")
	s.film(t, dir, "watch", "A rollout under way: one pod after the other restarts in place", "watch", "cloneset/web")
	s.shoot(t, dir, "restart", "Containers restart in their pods, two at a time", "restart", "cloneset/web",
		"--containers=app", "--max-unavailable=2")

	s.do(t, "patch", "cloneset/web", "--type=merge", "-p",
		`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}`)
	s.do(t, "set", "image", "cloneset/web", "app=plugin/web:missing")
	var stuck string
	eventually(t, func(context.Context) error {
		text := s.do(t, "status", "cloneset/web")
		if !strings.Contains(text, "Stalled=True") {
			return fmt.Errorf("not yet stalled:\n%s", text)
		}
		found := regexp.MustCompile(`(web-\w+): container app waits`).FindStringSubmatch(text)
		if found == nil {
			return fmt.Errorf("no pod waits:\n%s", text)
		}
		stuck = found[1]
		return nil
	})
	s.shoot(t, dir, "status", "A rollout that stands still, and why", "status", "cloneset/web")
	s.shoot(t, dir, "explain", "Why a pod is not ready, and what touches it", "explain", "pod/"+stuck)
}

// shoot draws what a call prints on a terminal.
func (s *space) shoot(t *testing.T, dir, name, title string, words ...string) {
	t.Helper()
	save(t, name, svg.Draw(prompt(words)+wrap(s.terminal(t, dir, words)), title))
}

// most is how many frames a picture has at most.
const most = 6

// film draws the pages that a call prints one over the other.
func (s *space) film(t *testing.T, dir, name, title string, words ...string) {
	t.Helper()
	var pages []string
	for page := range strings.SplitSeq(s.terminal(t, dir, words), "\x1b[H") {
		page = regexp.MustCompile(`\x1b\[[0-9]*[KJ]`).ReplaceAllString(page, "")
		if page = strings.TrimSpace(page); page != "" && (len(pages) == 0 || pages[len(pages)-1] != page) {
			pages = append(pages, page)
		}
	}
	var frames []svg.Frame
	for i := range min(most, len(pages)) {
		at := i * (len(pages) - 1) / max(1, min(most, len(pages))-1)
		frames = append(frames, svg.Frame{Text: prompt(words) + wrap(pages[at]), Seconds: 1.5})
	}
	frames[len(frames)-1].Seconds = 3
	save(t, name, svg.Animate(frames, len(frames)/2, title))
}

func prompt(words []string) string {
	return "\x1b[2m$ \x1b[0m\x1b[1mkubectl kruise " + strings.Join(words, " ") + "\x1b[0m\n"
}

func save(t *testing.T, name, image string) {
	t.Helper()
	const limit = 60 << 10
	path := filepath.Join(*pluginPictures, "term-"+name+".svg")
	if t.Logf("%s: %d bytes", path, len(image)); len(image) > limit {
		t.Errorf("%s has %d bytes, want at most %d", path, len(image), limit)
	}
	if err := os.WriteFile(path, []byte(image), 0o644); err != nil {
		t.Fatal(err)
	}
}

// terminal calls the plugin in a terminal of its own, and returns what it writes.
func (s *space) terminal(t *testing.T, dir string, words []string) string {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), s.binary, append([]string{"-n", s.namespace}, words...)...)
	command.Dir, command.Env = dir, append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "TERM=xterm")
	command.Stdin, command.Stdout, command.Stderr = theirs, theirs, theirs
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	var written bytes.Buffer
	_, _ = written.ReadFrom(ours) // ends with an error, when the terminal is closed
	_ = command.Wait()            // plan reports by its exit code
	return strings.ReplaceAll(written.String(), "\r", "")
}

// wrap breaks lines at the width of a terminal, as terminals do. Long lines have no colours.
func wrap(text string) string {
	const columns = 110
	var b strings.Builder
	for line := range strings.Lines(text) {
		runes := []rune(line)
		for !strings.Contains(line, "\x1b") && len(runes) > columns+1 {
			b.WriteString(string(runes[:columns]) + "\n")
			runes = runes[columns:]
		}
		b.WriteString(string(runes))
	}
	return b.String()
}
