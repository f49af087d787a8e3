package process

import (
	"io"
	"log/slog"

	"github.com/go-logr/logr"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
)

// Logger writes lines of text, or of JSON. Verbosity is that of klog.
func Logger(to io.Writer, o options.Options) logr.Logger {
	settings := &slog.HandlerOptions{Level: slog.Level(-o.Verbosity)}
	if o.LogFormat == "json" {
		return logr.FromSlogHandler(slog.NewJSONHandler(to, settings))
	}
	return logr.FromSlogHandler(slog.NewTextHandler(to, settings))
}
