// Package logs writes the logs of a program, with the flags that klog has.
package logs

import (
	"flag"
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
)

// Options of logs.
type Options struct {
	// Verbosity is that of klog: 4 is for operations, 5 and more for debugging.
	Verbosity int
	// Format is text or json; empty is text.
	Format string
}

// Flags reads the options from flags. It also accepts the flags of klog and of the logs of Kubernetes components that
// have no effect here, as unchanged manifests may pass them. It returns why, by their names.
func (o *Options) Flags(set *flag.FlagSet) (inert map[string]string) {
	set.IntVar(&o.Verbosity, "v", 0, "how much to log: 4 is for operations, 5 and more for debugging")
	set.StringVar(&o.Format, "logging-format", "text", "text or json")
	const why = "logs go to stderr"
	inert = map[string]string{}
	for _, name := range []string{
		"logtostderr", "alsologtostderr", "one_output", "add_dir_header", "skip_headers", "skip_log_headers",
		"legacy_stderr_threshold_behavior",
		"log-text-split-stream", "log-json-split-stream",
	} {
		inert[name] = why
		set.BoolFunc(name, "no effect: "+why, func(string) error { return nil })
	}
	for _, name := range []string{
		"stderrthreshold", "vmodule", "log_dir", "log_file", "log_file_max_size", "log_backtrace_at", "log-flush-frequency",
		"log-text-info-buffer-size", "log-json-info-buffer-size",
	} {
		inert[name] = why
		set.Func(name, "no effect: "+why, func(string) error { return nil })
	}
	return inert
}

// Validate says what is wrong.
func (o Options) Validate() error {
	if o.Verbosity < 0 {
		return fmt.Errorf("-v=%d must not be negative", o.Verbosity)
	}
	if o.Format != "text" && o.Format != "json" && o.Format != "" {
		return fmt.Errorf("--logging-format=%s: want text or json", o.Format)
	}
	return nil
}

// Logger writes lines of text, or of JSON.
func (o Options) Logger(to io.Writer) logr.Logger {
	settings := &slog.HandlerOptions{Level: slog.Level(-o.Verbosity)}
	if o.Format == "json" {
		return logr.FromSlogHandler(slog.NewJSONHandler(to, settings))
	}
	return logr.FromSlogHandler(slog.NewTextHandler(to, settings))
}
