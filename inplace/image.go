package inplace

import "strings"

// SameImage reports whether two references name the same image, however a container runtime writes them: nginx is
// docker.io/library/nginx:latest. Where one has a digest the other needs the same; tags are no matter then.
func SameImage(a, b string) bool {
	if a == b {
		return true
	}
	x, y := parseImage(a), parseImage(b)
	if x.domain != y.domain || x.path != y.path {
		return false
	}
	if x.digest != "" || y.digest != "" {
		return x.digest == y.digest
	}
	return x.tag == y.tag
}

type image struct{ domain, path, tag, digest string }

// hub is the registry of references without one.
const hub = "docker.io"

// parseImage never fails: what is no reference equals only itself.
func parseImage(s string) image {
	var i image
	s = strings.TrimPrefix(s, "docker-pullable://")
	s, i.digest, _ = strings.Cut(s, "@")
	if slash, colon := strings.LastIndexByte(s, '/'), strings.LastIndexByte(s, ':'); colon > slash {
		s, i.tag = s[:colon], s[colon+1:]
	}
	if i.tag == "" {
		i.tag = "latest"
	}
	var ok bool
	i.domain, i.path, ok = strings.Cut(s, "/")
	if !ok || !strings.ContainsAny(i.domain, ".:") && i.domain != "localhost" && strings.ToLower(i.domain) == i.domain {
		i.domain, i.path = hub, s
	}
	if i.domain == "index.docker.io" {
		i.domain = hub
	}
	if name, official := strings.CutPrefix(i.path, "library/"); official && i.domain == hub &&
		!strings.Contains(name, "/") {
		i.path = name
	}
	return i
}
