//go:build linux

package nodes

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
)

// StopAPIServer stops the API server as a stalled machine does: connections stay open, and no request gets an answer.
func (c Config) StopAPIServer() error { return c.signalAPIServer(syscall.SIGSTOP) }

// ContinueAPIServer lets a stopped API server go on.
func (c Config) ContinueAPIServer() error { return c.signalAPIServer(syscall.SIGCONT) }

func (c Config) signalAPIServer(signal syscall.Signal) error {
	record, err := recordIn(plane.RecordDir(c.planeDir()), "kube-apiserver")
	if err != nil {
		return err
	}
	return record.Signal(signal)
}

// Partition drops what an address on a node sends to the API server. What the API server sends to the address, and the
// answers, pass.
func (Config) Partition(ctx context.Context, address string) error {
	_, err := execute(ctx, "iptables", append([]string{"-I", "INPUT"}, partition(address)...)...)
	return err
}

// Heal ends a partition.
func (Config) Heal(ctx context.Context, address string) error {
	_, err := execute(ctx, "iptables", append([]string{"-D", "INPUT"}, partition(address)...)...)
	return err
}

// partition is the rule of a partition. A connection that the API server has opened goes on.
func partition(address string) []string {
	return []string{
		"-s", address, "-d", api, "-i", bridge, "-p", "tcp", "--dport", "443", "-j", "DROP",
	}
}

// heal removes the rules of all partitions.
func heal(ctx context.Context) error {
	rules, err := execute(ctx, "iptables", "-S", "INPUT")
	if err != nil {
		return nil // without iptables there are none
	}
	for rule := range strings.Lines(rules) {
		if !strings.Contains(rule, "-i "+bridge+" ") {
			continue
		}
		words := strings.Fields(strings.TrimPrefix(rule, "-A "))
		if _, err := execute(ctx, "iptables", append([]string{"-D"}, words...)...); err != nil {
			return fmt.Errorf("heal a partition: %w", err)
		}
	}
	return nil
}

func recordIn(dir, name string) (process.Record, error) {
	records, err := process.Records(dir)
	if err != nil {
		return process.Record{}, err
	}
	for _, r := range records {
		if r.Name == name {
			return r, nil
		}
	}
	return process.Record{}, fmt.Errorf("%s: %w", name, errDown)
}
