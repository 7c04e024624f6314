"""The formats that servers of models speak: each is a pair of an encoder of requests and a decoder of answers."""
