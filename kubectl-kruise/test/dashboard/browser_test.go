//go:build simulated

package dashboard_test

import (
	"context"
	_ "embed"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"k8s.io/apimachinery/pkg/util/wait"
)

// audit is a script that returns what is wrong with the page for users of keyboards and screen readers.
//
//go:embed audit.js
var audit string

// browser is Chromium with one page.
type browser struct {
	t *testing.T
	//nolint:containedctx // chromedp keeps the page in the context
	ctx context.Context

	mu              sync.Mutex
	problems        []string // of the console
	foreign         []string // requests to other hosts
	messages, bytes int
	last            time.Time
	most            int // messages in one second
	inSecond        int
}

// requireBrowser makes a missing Chromium a failure.
const requireBrowser = "KRUISEKIT_REQUIRE_BROWSER"

// newBrowser starts Chromium. The test is skipped without it.
func newBrowser(t *testing.T, page string) *browser {
	t.Helper()
	program := chromium(t)
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 860),
	}
	for _, name := range []string{
		"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
		"disable-component-update", "disable-sync", "hide-scrollbars",
	} {
		options = append(options, chromedp.Flag(name, true))
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {})) // of events that it does not know
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	address, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Run(ctx); err != nil { // the browser ends with the context of the first call
		t.Fatal(err)
	}
	chromedp.ListenTarget(ctx, func(event any) { b.hear(event, address.Host) })
	b.run(network.Enable(), log.Enable(), emulation.SetDeviceMetricsOverride(1280, 860, 1, false))
	return b
}

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv(requireBrowser) == "1" {
		t.Fatal("Chromium is not installed")
	}
	t.Skip("Chromium is not installed: apt-get install chromium. " + requireBrowser + "=1 makes this a failure.")
	return ""
}

// hear counts what the page does.
func (b *browser) hear(event any, host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning || e.Type == runtime.APITypeAssert {
			var texts []string
			for _, arg := range e.Args {
				texts = append(texts, string(arg.Value)+arg.Description)
			}
			b.problems = append(b.problems, string(e.Type)+": "+strings.Join(texts, " "))
		}
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, "exception: "+e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			b.problems = append(b.problems, string(e.Entry.Level)+": "+e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if to, err := url.Parse(e.Request.URL); err != nil || to.Host != host {
			b.foreign = append(b.foreign, e.Request.URL)
		}
	case *network.EventEventSourceMessageReceived:
		b.messages++
		b.bytes += len(e.Data)
		if time.Since(b.last) > time.Second {
			b.last, b.inSecond = time.Now(), 0
		}
		b.inSecond++
		b.most = max(b.most, b.inSecond)
	}
}

func (b *browser) run(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Minute)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns the value of an expression.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	var value T
	b.run(chromedp.Evaluate(expression, &value))
	return value
}

// until waits until an expression is true.
func (b *browser) until(expression string) {
	b.t.Helper()
	if err := wait.PollUntilContextTimeout(b.t.Context(), 200*time.Millisecond, 5*time.Minute, true,
		func(context.Context) (bool, error) { return eval[bool](b, "Boolean("+expression+")"), nil }); err != nil {
		b.t.Fatalf("%s is false on the page %s", expression, eval[string](b, "document.body.innerText"))
	}
}

// scheme sets what the user prefers: light or dark.
func (b *browser) scheme(name string) {
	b.t.Helper()
	b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}))
}

// audit reports what is wrong with the page.
func (b *browser) audit(where string) {
	b.t.Helper()
	for _, finding := range eval[[]string](b, audit) {
		b.t.Errorf("%s: %s", where, finding)
	}
}

// picture writes a picture of the page, where the test was asked for pictures.
func (b *browser) picture(dir, name string) {
	b.t.Helper()
	if dir == "" {
		return
	}
	var png []byte
	b.run(chromedp.CaptureScreenshot(&png))
	if len(png) > 150<<10 {
		b.t.Errorf("picture %s has %d bytes", name, len(png))
	}
	if err := os.WriteFile(filepath.Join(dir, name), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
