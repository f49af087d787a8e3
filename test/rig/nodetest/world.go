package nodetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

var (
	errDead  = errors.New("the process is dead")
	errFault = errors.New("something went wrong on the way")
)

// mostInRow bounds the failures in a row: a manager gives up what a daemon does not answer.
const mostInRow = 3

// World is an API server with a node, in the time of a bubble. Daemons run there, one after the other. Their caches
// lag, and each call of theirs may fail, or be the last thing that they do. Set the fields before Play.
type World struct {
	*apiserver.Server

	Node *Node
	// Start starts a daemon.
	Start func(ctx context.Context, d *Daemon) *Process
	// Learned is called when the cache of a daemon has learned of an object; before is nil for a new one. The function
	// must not call the server.
	Learned func(d *Daemon, before, after client.Object)
	// Late is how far the kubelet may be behind, Lag how far the caches of daemons may be.
	Late, Lag time.Duration

	mu               sync.Mutex
	rand             *rand.Rand
	began            time.Time
	stored           map[string]client.Object
	watching         []*watch.RaceFreeFakeWatcher
	now              *Daemon
	risk             int
	deaths, failures int
	inRow            int
	writes           map[string]int
	conflicts        int
	lines            []string
}

// NewWorld returns a world without objects.
func NewWorld(seed int64, scheme *runtime.Scheme, node *Node) *World {
	w := &World{
		Node: node, Lag: 300 * time.Millisecond, rand: rand.New(rand.NewSource(seed)), began: time.Now(),
		stored: map[string]client.Object{}, writes: map[string]int{},
	}
	w.Restore(scheme)
	return w
}

// Restore begins with an empty server, as after etcd was restored.
func (w *World) Restore(scheme *runtime.Scheme) {
	w.Server = apiserver.New(scheme, time.Now)
	w.OnChange(w.changed)
}

func keyOf(o client.Object) string { return fmt.Sprintf("%T %s", o, o.GetName()) }

func versionOf(o client.Object) int {
	n, err := strconv.Atoi(o.GetResourceVersion())
	if err != nil {
		panic(err)
	}
	return n
}

// changed has the kubelet and the daemon learn of a change.
func (w *World) changed(before, after client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if after == nil {
		delete(w.stored, keyOf(before))
		return
	}
	w.stored[keyOf(after)] = after
	if _, ok := after.(*corev1.Pod); ok && w.Late > 0 {
		time.AfterFunc(time.Duration(w.rand.Int63n(int64(w.Late))), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.show(keyOf(after))
		})
	} else if ok {
		w.show(keyOf(after))
	}
	if d := w.now; d != nil {
		time.AfterFunc(time.Duration(w.rand.Int63n(int64(w.Lag+1))), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			d.learn(after)
		})
	}
}

// show has the kubelet see a pod as it is.
func (w *World) show(key string) {
	if pod, ok := w.stored[key].(*corev1.Pod); ok {
		for _, to := range w.watching {
			to.Modify(pod.DeepCopy())
		}
	}
}

// Say adds a line to the story of the world.
func (w *World) Say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say(format, args...)
}

func (w *World) say(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf("%7.2f  %s", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...)))
}

// Text is the story of the world.
func (w *World) Text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

// Dare has one call in so many fail, and one be the last; none for 0.
func (w *World) Dare(risk int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.risk = risk
}

// Mishaps are the deaths of daemons, and the calls that have failed.
func (w *World) Mishaps() (deaths, failures int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deaths, w.failures
}

// Writes are those of daemons to the status of an object, and all that were conflicts.
func (w *World) Writes(name string) (writes, conflicts int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes[name], w.conflicts
}

// Play lets the node and a daemon, and what is beside them, live until a story has been told.
func (w *World) Play(t *testing.T, story func(), beside ...func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, run := range append(beside, func(ctx context.Context) { w.Kubelet(ctx, t) }) {
		running.Add(1)
		go func() {
			defer running.Done()
			run(ctx)
		}()
	}
	time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble
	w.birth(ctx)
	story()
	w.Dare(0)
	w.mu.Lock()
	last := w.now
	w.mu.Unlock()
	cancel()
	last.Wait()
	running.Wait()
	time.Sleep(time.Minute) //nolint:forbidigo // for what is still under way in the time of the bubble
}

// Kubelet runs the pods of the node until the context ends.
func (w *World) Kubelet(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := w.Node.Run(ctx, kubelet{w}, ""); err != nil {
		t.Error(err)
	}
}

// kubelet is the client of the kubelet.
type kubelet struct{ *World }

// Watch begins with the pods that there are.
func (k kubelet) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	to := watch.NewRaceFreeFake()
	k.watching = append(k.watching, to)
	for _, o := range k.stored {
		if pod, ok := o.(*corev1.Pod); ok {
			to.Add(pod.DeepCopy())
		}
	}
	return to, nil
}

func (w *World) birth(ctx context.Context) {
	if ctx.Err() != nil {
		return // the world has ended
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say("daemon: starts")
	d := w.NewDaemon()
	d.successor = func() { w.birth(ctx) }
	dying, cancel := context.WithCancel(ctx)
	d.cancel = cancel
	d.Process = w.Start(dying, d)
	for _, o := range w.stored {
		d.learn(o)
	}
	w.now = d
}

// Daemon is one process on the node.
type Daemon struct {
	*Process

	world     *World
	seen      map[string]client.Object
	dead      bool
	cancel    context.CancelFunc
	successor func()
}

// NewDaemon returns a daemon that was not started, whose cache is empty.
func (w *World) NewDaemon() *Daemon { return &Daemon{world: w, seen: map[string]client.Object{}} }

func (d *Daemon) learn(o client.Object) {
	before := d.seen[keyOf(o)]
	if before == nil || versionOf(before) < versionOf(o) {
		d.seen[keyOf(o)] = o
		d.world.Learned(d, before, o)
	}
}

// Catch has the cache of a daemon that was not started show what is.
func (d *Daemon) Catch() {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	maps.Copy(d.seen, d.world.stored)
}

// Seen returns what the cache of the daemon has, in any order.
func (d *Daemon) Seen() (all []client.Object) {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	for _, o := range d.seen {
		all = append(all, o)
	}
	return all
}

// Reach is called before and after each call. It may fail, and it may be the last thing that the daemon does.
func (d *Daemon) Reach() error {
	w := d.world
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case d.dead:
		return errDead
	case w.risk > 0 && w.rand.Intn(w.risk) == 0:
		w.say("daemon: dies")
		d.dead = true
		w.deaths++
		d.cancel()
		time.AfterFunc(time.Duration(w.rand.Intn(2000))*time.Millisecond, d.successor)
		return errDead
	case w.risk > 0 && w.inRow < mostInRow && w.rand.Intn(w.risk) == 0:
		w.failures++
		w.inRow++
		return errFault
	}
	w.inRow = 0
	return nil
}

// PatchStatus is for an interceptor.
func (d *Daemon) PatchStatus( //nolint:revive // as interceptor.Funcs
	ctx context.Context, _ client.Client, subresource string, o client.Object, p client.Patch,
	_ ...client.SubResourcePatchOption,
) error {
	if err := d.Reach(); err != nil {
		return err
	}
	err := d.world.SubResource(subresource).Patch(ctx, o, p)
	d.world.mu.Lock()
	if err == nil {
		d.world.writes[o.GetName()]++
	} else if apierrors.IsConflict(err) {
		d.world.conflicts++
	}
	d.world.mu.Unlock()
	if err != nil {
		return err
	}
	return d.Reach()
}

// Runtime returns the connection of the daemon to the container runtime.
func (d *Daemon) Runtime() Connection { return Connection{Node: d.world.Node, daemon: d} }

// Connection is one to the container runtime.
type Connection struct {
	*Node

	daemon *Daemon
}

// reach makes a failure one of the connection.
func (c Connection) reach(err error) error {
	if err != nil {
		return err
	}
	if err := c.daemon.Reach(); err != nil {
		return fmt.Errorf("%w: %w", cri.ErrUnavailable, err)
	}
	return nil
}

// Containers lists those that a query selects.
func (c Connection) Containers(ctx context.Context, q cri.Query) ([]cri.Container, error) {
	if err := c.reach(nil); err != nil {
		return nil, err
	}
	return c.Node.Containers(ctx, q)
}

// Exec runs a command.
func (c Connection) Exec(ctx context.Context, id string, command cri.Command) (cri.Output, error) {
	if err := c.reach(nil); err != nil {
		return cri.Output{}, err
	}
	out, err := c.Node.Exec(ctx, id, command)
	return out, c.reach(err)
}

// Stop ends a container.
func (c Connection) Stop(ctx context.Context, id string, grace time.Duration) error {
	if err := c.reach(nil); err != nil {
		return err
	}
	return c.reach(c.Node.Stop(ctx, id, grace))
}
