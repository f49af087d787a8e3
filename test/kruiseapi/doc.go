// Package kruiseapi tests this library beside the types of OpenKruise in one program. It is a module of its own, which
// alone needs github.com/openkruise/kruise-api.
package kruiseapi
