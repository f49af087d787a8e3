package credentials

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/kruisekit/kruisekit/imagepull"
)

// plugin runs a program and remembers its answers.
type plugin struct {
	provider
	options Options

	mu sync.Mutex
	// answers by what they hold for.
	answers map[cacheKey]answer
	// asking has a channel for each repository that the program is being asked for, closed at the end.
	asking map[string]chan struct{}
}

// cacheKey is what an answer holds for: an image, a registry, or everything.
type cacheKey struct {
	kind, of string
}

const (
	forImage    = "Image"
	forRegistry = "Registry"
	forAll      = "Global"
)

type answer struct {
	keyring imagepull.Keyring
	until   time.Time
}

func newPlugin(p provider, o Options) *plugin {
	return &plugin{provider: p, options: o, answers: map[cacheKey]answer{}, asking: map[string]chan struct{}{}}
}

func (p *plugin) isFor(repository string) bool {
	for _, pattern := range p.MatchImages {
		if imagepull.Matches(pattern, repository) {
			return true
		}
	}
	return false
}

// keyFor a repository, of one kind.
func keyFor(kind, repository string) cacheKey {
	switch kind {
	case forRegistry:
		registry, _, _ := strings.Cut(repository, "/")
		return cacheKey{kind, registry}
	case forAll:
		return cacheKey{kind: kind}
	}
	return cacheKey{kind, repository}
}

// ask gives what is remembered, or runs the program. Others who ask for the same repository meanwhile wait for the
// answer.
func (p *plugin) ask(ctx context.Context, repository string) (imagepull.Keyring, error) {
	for {
		known, found, busy := p.turn(repository)
		if found {
			return known, nil
		}
		if busy == nil {
			break
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return imagepull.Keyring{}, ctx.Err()
		}
	}
	said, err := p.run(ctx, repository)
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.asking[repository])
	delete(p.asking, repository)
	if err != nil {
		return imagepull.Keyring{}, err
	}
	if said.lasts > 0 {
		p.answers[keyFor(said.kind, repository)] = answer{said.keyring, p.options.Now().Add(said.lasts)}
	}
	return said.keyring, nil
}

// turn gives what is remembered, or else what to wait for. Neither means that it is the caller's turn.
func (p *plugin) turn(repository string) (known imagepull.Keyring, found bool, busy <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.options.Now()
	for key, a := range p.answers {
		if !now.Before(a.until) {
			delete(p.answers, key)
		}
	}
	for _, kind := range []string{forImage, forRegistry, forAll} {
		if a, ok := p.answers[keyFor(kind, repository)]; ok {
			return a.keyring, true, nil
		}
	}
	if asking, ok := p.asking[repository]; ok {
		return known, false, asking
	}
	p.asking[repository] = make(chan struct{})
	return known, false, nil
}

func (p *plugin) forget(repository string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kind := range []string{forImage, forRegistry, forAll} {
		delete(p.answers, keyFor(kind, repository))
	}
}
