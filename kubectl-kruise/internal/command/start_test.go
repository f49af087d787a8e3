package command_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// What packages allocate before main is what each call and each completion in a shell waits for.
func TestStart(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	command.Env = append(os.Environ(), "GODEBUG=inittrace=1", "LC_ALL=C.UTF-8")
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	line := regexp.MustCompile(`(?m)^init (\S+) @.* clock, (\d+) bytes, (\d+) allocs$`)
	const most, mostBytes = 45_000, 7 << 20
	packages, allocs, bytes := 0, 0, 0
	for _, found := range line.FindAllStringSubmatch(string(said), -1) {
		b, errB := strconv.Atoi(found[2])
		a, errA := strconv.Atoi(found[3])
		if errA != nil || errB != nil {
			t.Fatalf("cannot read %q", found[0])
		}
		packages, allocs, bytes = packages+1, allocs+a, bytes+b
		if b > 1<<20 {
			t.Errorf("%s allocates %d bytes", found[1], b)
		}
	}
	t.Logf("%d packages, %d allocations, %d bytes", packages, allocs, bytes)
	if packages < 100 || allocs > most || bytes > mostBytes {
		t.Errorf("%d packages make %d allocations of %d bytes, want at most %d of %d", packages, allocs, bytes, most,
			mostBytes)
	}
}
