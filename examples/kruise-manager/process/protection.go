package process

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/webhooks/deletion"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
)

// mostProtectionLog is how long protection.log becomes before another one begins.
const mostProtectionLog = 10 << 20

// audit receives refusals. They are in a file, or in the log of the process.
type audit struct {
	logger logr.Logger
	file   *protectionLog // nil for none
}

func newAudit(ctx context.Context, p options.Protection) (audit, error) {
	a := audit{logger: log.FromContext(ctx)}
	if p.LogPath == "" {
		return a, nil
	}
	var err error
	a.file, err = openProtectionLog(p.LogPath, mostProtectionLog)
	return a, err
}

func (a audit) deletion(r deletion.Record) {
	a.add(r, "Refused deletion", "kind", r.Kind, "namespace", r.Namespace, "name", r.Name, "user", r.UserAgent,
		"code", r.Code)
}

func (a audit) disruption(r disruption.Refusal) {
	a.add(r, "Refused disruption", "kind", r.Kind, "namespace", r.Namespace, "name", r.Name, "user", r.User)
}

func (a audit) add(record any, message string, about ...any) {
	if a.file == nil {
		a.logger.Info(message, about...)
		return
	}
	if err := a.file.add(record); err != nil {
		a.logger.Error(err, "Lost a line of protection.log", about...)
	}
}

// guarded adds what flags set to the options of deletion protection.
func guarded(o deletion.Options, p options.Protection, a audit) deletion.Options {
	o.Policy.ExemptUsers, o.Policy.HoldNamespaces, o.Audit = p.ExemptUsers, p.HoldNamespaces, a.deletion
	return o
}

// protectionLog is protection.log, and protection.log.1 with what was in it before.
type protectionLog struct {
	path string
	most int64

	mu   sync.Mutex
	file *os.File
	size int64
}

func openProtectionLog(dir string, most int64) (*protectionLog, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // other containers of the pod may collect the file
		return nil, fmt.Errorf("make the directory of protection.log: %w", err)
	}
	l := &protectionLog{path: filepath.Join(dir, "protection.log"), most: most}
	return l, l.open()
}

func (l *protectionLog) open() error {
	file, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // as above
	if err != nil {
		return fmt.Errorf("open protection.log: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("open protection.log: %w", err)
	}
	l.file, l.size = file, info.Size()
	return nil
}

// add writes a line of JSON.
func (l *protectionLog) add(record any) error {
	line, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode a refusal: %w", err)
	}
	line = append(line, '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(line)) > l.most {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	if err != nil {
		return fmt.Errorf("write protection.log: %w", err)
	}
	return nil
}

func (l *protectionLog) rotate() error {
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		return fmt.Errorf("rotate protection.log: %w", err)
	}
	before := l.file
	if err := l.open(); err != nil {
		return err
	}
	return before.Close() //nolint:wrapcheck // the caller logs it with what it lost
}
