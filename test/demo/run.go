package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kruisekit/kruisekit/test/demo/ground"
	"github.com/kruisekit/kruisekit/test/demo/rollout"
	"github.com/kruisekit/kruisekit/test/demo/writes"
)

const (
	nodes    = 5
	replicas = 30
	// containerStart is what a container takes to start: long enough to be seen.
	containerStart = time.Second
)

const explanation = `
kept     pods with the same UID as before: same node, same address, same volumes
seconds  until all changed pods are available. Each may have 6 of 30 unavailable,
         and makes none beyond 30. A simulated node starts any container in %s; on
         a real one a new pod also gets its network, its volumes and its images.
writes   per changed pod, counted in the API server's audit log, events apart:
         of the controllers (kruisekit's, or those of Deployments and ReplicaSets)
         to pods and to other objects, and of the stand-in of scheduler and kubelets.
         None of them is throttled here, so they write more statuses than usual.
`

// run is the demo from the beginning to the end. It writes to out. Whatever happens, nothing is left running.
func run(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "kruisekit-demo-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() {
		if err == nil || ctx.Err() != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		} else {
			err = fmt.Errorf("%w\nthe logs are in %s", err, dir)
		}
	}()
	log, err := os.Create(filepath.Join(dir, "manager.log"))
	if err != nil {
		return fmt.Errorf("make log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	logger := logr.FromSlogHandler(slog.NewTextHandler(log, nil))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	began := time.Now()
	fmt.Fprintf(out, "Starting etcd, a Kubernetes control plane and %d simulated nodes ...\n", nodes)
	g, err := ground.Start(ctx, ground.Options{
		Dir: filepath.Join(dir, "cluster"), Nodes: nodes, ContainerStart: containerStart,
		AuditPolicy: writes.Policy(rollout.Namespace), Say: out, Log: logger,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	fmt.Fprintf(out, "up after %.1f s\n\n", time.Since(began).Seconds())
	running, cancel := g.While(ctx)
	defer cancel()
	if err := g.Manage(running, rollout.Manager); err != nil {
		return err
	}
	return show(running, out, g)
}

// show plays the story and sums it up.
func show(ctx context.Context, out io.Writer, g *ground.Ground) error {
	client, err := g.Client(ctx, rollout.Owner, rollout.Namespace)
	if err != nil {
		return err
	}
	play := &rollout.Play{Client: client, Replicas: replicas, Out: out}
	rows, err := play.Run(ctx)
	if err != nil {
		return err
	}
	if err := rollout.CountWrites(ctx, g.Audit, rows); err != nil {
		return err
	}
	fmt.Fprintln(out)
	fmt.Fprint(out, rollout.Summary(rows))
	fmt.Fprintf(out, explanation, containerStart)
	return rollout.Check(rows)
}
