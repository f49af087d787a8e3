//go:build nightly

package workload_test

import "testing"

func TestManySites(t *testing.T) { runSites(t, 1000, 200) }

func TestManyGroups(t *testing.T) { runGroups(t, 1000, 100) }
