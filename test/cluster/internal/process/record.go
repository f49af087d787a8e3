package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const recordSuffix = ".json"

// killed is how long the kernel may take to end a killed process.
const killed = 20 * time.Second

// Record names one process for good: a PID may be given to another one, but not with the same start time and boot.
type Record struct {
	Name      string `json:"name"`
	PID       int    `json:"pid"`
	StartTime string `json:"startTime"`
}

func recordOf(name string, pid int) Record {
	return Record{Name: name, PID: pid, StartTime: startTime(pid)}
}

// Records reads the records in a directory, by name. A record that was being written when its writer died is skipped.
func Records(dir string) ([]Record, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+recordSuffix))
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	var records []Record
	for _, file := range files {
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read record: %w", err)
		}
		var r Record
		if json.Unmarshal(content, &r) == nil && r.PID > 1 && r.StartTime != "" {
			records = append(records, r)
		}
	}
	return records, nil
}

// Alive reports whether the process runs. A zombie does not.
func (r Record) Alive() bool { return r.StartTime != "" && startTime(r.PID) == r.StartTime }

// Signal sends a signal to the process if it still is the recorded one.
func (r Record) Signal(signal syscall.Signal) error {
	// On Linux, os.FindProcess opens a pidfd, which pins the identity that the check then confirms.
	p, err := os.FindProcess(r.PID)
	if err != nil {
		return fmt.Errorf("find process %s: %w", r.Name, err)
	}
	defer func() { _ = p.Release() }()
	if !r.Alive() {
		return nil
	}
	if err := p.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s (%d): %w", r.Name, r.PID, err)
	}
	return nil
}

// Stop asks the process to end, kills it when it has not after grace, and waits for its end.
func (r Record) Stop(grace time.Duration) error {
	if err := r.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if r.gone(grace) {
		return nil
	}
	if err := r.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !r.gone(killed) {
		return fmt.Errorf("process %s (%d) survives being killed", r.Name, r.PID)
	}
	return nil
}

func (r Record) gone(within time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return Poll(ctx, func(context.Context) error {
		if r.Alive() {
			return errRunning
		}
		return nil
	}) == nil
}

var errRunning = errors.New("still running")

// StopRecorded stops all processes that are recorded in a directory, all at once, and removes their records.
func StopRecorded(dir string, grace time.Duration) error {
	records, err := Records(dir)
	if err != nil {
		return err
	}
	results := make(chan error)
	for _, r := range records {
		go func() {
			err := r.Stop(grace)
			if err == nil {
				err = removeFile(filepath.Join(dir, r.Name+recordSuffix))
			}
			results <- err
		}()
	}
	var failures []error
	for range records {
		failures = append(failures, <-results)
	}
	return errors.Join(failures...)
}

// save writes the record so that a reader never sees half of it.
func (r Record) save(path string) error {
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("save record: %w", err)
	}
	if err := os.WriteFile(path+".new", content, 0o644); err != nil {
		return fmt.Errorf("save record: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("save record: %w", err)
	}
	return nil
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
