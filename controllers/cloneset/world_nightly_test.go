//go:build nightly

package cloneset_test

import "testing"

func TestManyWorlds(t *testing.T) { runWorlds(t, 1000, 2000) }

func TestDeathAtEachWrite(t *testing.T) { runDeaths(t, 1) }
