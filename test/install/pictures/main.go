package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/prometheus/tsdb"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var (
		kubeconfig = flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "of an administrator")
		took       = flag.Duration("for", 0, "how long to record; 0 draws what was recorded before")
		data       = flag.String("data", "", "directory of the recorded metrics")
		config     = flag.String("config", "../../config/monitoring", "directory of the dashboards")
		out        = flag.String("out", "../../docs/images", "directory of the pictures")
		kind       = flag.String("kind", "cloneset", "kind of the dashboard of one workload")
		name       = flag.String("name", "", "its name; that of the first workload if empty")
	)
	flag.Parse()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	options := tsdb.DefaultOptions()
	options.OutOfOrderTimeWindow = time.Minute.Milliseconds()
	db, err := tsdb.Open(*data, logger, nil, options, nil)
	if err != nil {
		return fmt.Errorf("open %s: %w", *data, err)
	}
	defer func() { _ = db.Close() }()
	if *took > 0 {
		r, err := newRecorder(*kubeconfig, filepath.Join(*config, "kube-state-metrics.yaml"), logger)
		if err != nil {
			return err
		}
		if err := r.record(ctx, db, *took); err != nil {
			return err
		}
	}
	from, to := time.UnixMilli(db.Head().MinTime()), time.UnixMilli(db.Head().MaxTime())
	s := source{
		db: db, engine: newEngine(), from: from, to: to, variables: map[string]string{"kind": *kind, "name": *name},
	}
	paths, err := filepath.Glob(filepath.Join(*config, "dashboards", "*.json"))
	if err != nil {
		return err
	}
	var empty []string
	for _, path := range paths {
		d, err := readDashboard(path)
		if err != nil {
			return err
		}
		panels, err := s.evaluate(ctx, d)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, p := range panels {
			if p.Type != "row" && len(p.series) == 0 {
				empty = append(empty, d.Title+": "+p.Title)
			}
		}
		picture := filepath.Join(*out, "dashboard-"+strings.TrimSuffix(filepath.Base(path), ".json")+".svg")
		if err := os.WriteFile(picture, draw(d.Title, panels, from, to), 0o644); err != nil {
			return err
		}
	}
	if len(empty) > 0 {
		return fmt.Errorf("panels without data: %s", strings.Join(empty, "; "))
	}
	return nil
}
