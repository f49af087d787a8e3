package main

import (
	"context"
	"errors"

	"github.com/kruisekit/kruisekit/test/cluster/internal/keeper"
)

var errTODO = errors.New("not built yet")

func (c command) upReal(context.Context) error          { return errTODO }
func (c command) downReal(context.Context) error        { return nil }
func (c command) statusReal(context.Context) error      { return nil }
func (c command) image(context.Context, []string) error { return errTODO }
func (c command) kubeconfigOf(level string) string {
	return keeper.Kubeconfig(c.cache.State(level))
}
