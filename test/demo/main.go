// Command demo shows rollouts in place of a CloneSet and of a Deployment beside that of a plain Deployment, in a
// cluster that it starts for itself and takes down again: a real control plane, simulated nodes, and kruisekit's
// reconcilers in this process.
//
//	go run ./test/demo          # or: make demo
//	go run ./test/demo -keep    # leaves the cluster up until Ctrl-C
//
// It needs Go and nothing else: no root, no Docker, no kubectl.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/kruisekit/kruisekit/test/demo/screen"
)

// interrupted is what a shell expects of a program that Ctrl-C has ended.
const interrupted = 130

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second Ctrl-C does not wait
	o := options{out: os.Stdout}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.BoolVar(&o.keep, "keep", false, "leave the cluster up until Ctrl-C")
	plain := flags.Bool("plain", false, "write plain lines also in a terminal")
	err := flags.Parse(os.Args[1:])
	if err == nil {
		o.style = style
		o.live = !*plain && term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("TERM") != "dumb"
		err = run(ctx, o)
	}
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "demo: interrupted:", err)
		os.Exit(interrupted)
	default:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// style is that of the terminal now; where there is none, that of a usual one.
func style() screen.Style {
	out := int(os.Stdout.Fd())
	if !term.IsTerminal(out) {
		return screen.Style{}
	}
	s := screen.Style{Colours: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width, height, err := term.GetSize(out); err == nil {
		s.Width, s.Height = width, height
	}
	return s
}

// options of a run.
type options struct {
	// out is where all goes.
	out io.Writer
	// live draws frames over each other; else there are lines.
	live bool
	// style of the terminal, asked before each frame.
	style func() screen.Style
	// keep leaves the cluster up until the context ends.
	keep bool
}
