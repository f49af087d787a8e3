// Package roundtriptest proves for one kind that its conversion loses nothing, with random objects.
package roundtriptest
