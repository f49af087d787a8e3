package simulation

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/workload"
)

// client is how one process of the controller reaches the server. What it reads may be old, and any write may be the
// last thing that the process does.
type client struct {
	*world
	// cache is what the process has read last.
	cache *snapshot
	// wrote is the version of the last write.
	wrote int64
	// firsts are the writes that were the first of a turn.
	firsts []int
	begun  bool
	// repeats are the writes that the process has made lately.
	repeats workload.Repeats
}

// death ends a process in the middle of whatever it does.
type death struct{}

// read gives what the cache of the process holds by now. A new process begins with everything as it is.
func (c *client) read() *snapshot {
	c.refresh()
	c.rules.reads(c.cache)
	c.begun = false
	return c.cache
}

func (c *client) refresh() {
	if c.cache == nil || c.settings.lag == 0 {
		c.cache = c.server.snapshot()
		return
	}
	for _, s := range c.history {
		if s.version > c.cache.version && c.random.IntN(c.settings.lag) == 0 {
			c.cache = s
			return
		}
	}
}

// write makes one write, unless the process dies before, and ends it where it dies after.
func (c *client) write(do func()) {
	c.writes++
	if !c.begun {
		c.begun, c.firsts = true, append(c.firsts, c.writes)
	}
	if c.writes == c.dies.at && !c.dies.after {
		c.tale.say("controller", "dies before its next write")
		panic(death{})
	}
	c.rules.writing = true
	do()
	c.rules.writing = false
	c.wrote = c.server.version
	if c.writes == c.dies.at {
		c.tale.say("controller", "dies")
		panic(death{})
	}
}

func (c *client) create(pod *corev1.Pod) (created *corev1.Pod, err error) {
	c.write(func() { created, err = c.server.create("controller", pod) })
	return created, err
}

func (c *client) patch(p change) (pod *corev1.Pod, err error) {
	p.by = "controller"
	c.write(func() { pod, err = c.server.patch(p) })
	c.rules.answered(err)
	return pod, err
}

func (c *client) delete(pod *corev1.Pod) (err error) {
	c.write(func() { err = c.server.delete("controller", pod) })
	return err
}

func (c *client) createRevision(r *appsv1.ControllerRevision) (err error) {
	c.write(func() { err = c.server.createRevision(r) })
	return err
}

func (c *client) numberRevision(name string, number int64) {
	c.write(func() { c.server.numberRevision(name, number) })
}

func (c *client) setCurrent(name string) {
	c.write(func() { c.server.setCurrent(name) })
}
