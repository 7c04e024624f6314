"""Joins a command's own network to chosen ports of this machine's loopback, and to nothing else.

A helper inside hands out fresh sockets of its network over one descriptor; they are bound, connected and read here. No
socket of this machine ever goes inside, because whoever holds one could connect it anew.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Self

GO = b"g"
FAMILIES = {socket.AF_INET: b"4", socket.AF_INET6: b"6"}
LOOPBACK = "127.0.0.1"
MOST_CONNECTIONS = 256
"""At a time, in each direction; more wait to be accepted."""
_CHUNK = 1 << 16
"""Held of each direction of a connection while its reader is slow."""
_BACKLOG = 128
_TRIES = 20
_BETWEEN_SECONDS = 0.1
_END_SECONDS = 10.0
_RESET = struct.pack("ii", 1, 0)

Address = tuple[str, int]
_Connect = Callable[[], Awaitable[socket.socket]]


class Forwarder:
    """Forwards one port of this machine into a network, and services out of it, while it is entered."""

    def __init__(self, services: tuple[Address, ...] = ()) -> None:
        """`services` are of this machine; the network inside has them at the same addresses."""
        self.failure = ""
        """Why a service could not be brought inside."""
        self.port = 0
        """Where this machine listens, once it does."""
        self._services = services
        self._control, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setblocking(False)
        self._listener: socket.socket | None = None
        self._loop = asyncio.new_event_loop()
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        # Whatever becomes of a connection, it does not keep Pawl from ending.
        self._thread = threading.Thread(target=self._run, name="forwarder", daemon=True)

    @property
    def file(self) -> int:
        """The descriptor that the helper inside inherits."""
        return self._theirs.fileno()

    def __enter__(self) -> Self:
        self._thread.start()
        self._soon(self._bring_services())
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_END_SECONDS)
        for one in (self._control, self._theirs, self._listener):
            if one is not None:
                one.close()

    def listen(self, port: int) -> None:
        """Takes a port of this machine's loopback, 0 for any; OSError where it is taken. Nobody is answered yet."""
        listener = socket.socket()
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((LOOPBACK, port))
            # At once: until then another one could bind the same port.
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            raise
        self._listener, self.port = listener, listener.getsockname()[1]

    def forward(self, port: int) -> None:
        """Answers at the port that was taken with what listens on a port inside."""
        assert self._listener is not None
        self._soon(self._accept(self._listener, partial(self._reach, port)))

    def connect(self, port: int) -> socket.socket:
        """A connection to a port inside, for Pawl itself; OSError where nothing answers."""
        made = asyncio.run_coroutine_threadsafe(self._reach(port), self._loop).result(_END_SECONDS)
        made.settimeout(_END_SECONDS)
        return made

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.close()

    def _soon(self, work: Awaitable[None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop)  # type: ignore[arg-type]

    async def _bring_services(self) -> None:
        for service in self._services:
            try:
                listener = await self._fresh(_family(service))
                listener.bind(service)
                listener.listen(_BACKLOG)
            except OSError as error:
                self.failure = f"port {service[1]} of {service[0]} cannot be brought inside: {error.strerror or error}"
                self._control.shutdown(socket.SHUT_RDWR)
                return
            self._keep(self._accept(listener, partial(_connected, service)))
        self._control.send(GO)

    def _keep(self, work: Awaitable[None]) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(work)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _fresh(self, family: socket.AddressFamily) -> socket.socket:
        """A new socket of the network inside. The helper is not believed: only a TCP socket of that family is taken."""
        async with self._turn:
            self._control.send(FAMILIES[family])
            await _readable(self._loop, self._control)
            _, files, _, _ = socket.recv_fds(self._control, 1, 1)
        found = [socket.socket(fileno=file) for file in files]
        for one in found:
            if (one.family, one.type, one.proto) == (family, socket.SOCK_STREAM, socket.IPPROTO_TCP):
                one.setblocking(False)
                return one
            one.close()
        raise OSError("no socket can be had inside")

    async def _reach(self, port: int) -> socket.socket:
        """A connection to a port inside, over IPv4 or IPv6; a server that starts anew is waited for."""
        for _ in range(_TRIES):
            for family, host in ((socket.AF_INET, LOOPBACK), (socket.AF_INET6, "::1")):
                with suppress(OSError):
                    return await _connect(self._loop, await self._fresh(family), (host, port))
            await asyncio.sleep(_BETWEEN_SECONDS)
        raise ConnectionRefusedError(f"nothing answers on port {port}")

    async def _accept(self, listener: socket.socket, connect: _Connect) -> None:
        room = asyncio.Semaphore(MOST_CONNECTIONS)
        with listener:
            while True:
                await room.acquire()
                try:
                    near, _ = await self._loop.sock_accept(listener)
                except OSError:
                    room.release()
                    await asyncio.sleep(_BETWEEN_SECONDS)
                    continue
                self._keep(_joined(self._loop, near, connect)).add_done_callback(lambda _: room.release())


def _family(address: Address) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


async def _connected(service: Address) -> socket.socket:
    made = socket.socket(_family(service))
    made.setblocking(False)
    return await _connect(asyncio.get_running_loop(), made, service)


async def _connect(loop: asyncio.AbstractEventLoop, made: socket.socket, address: Address) -> socket.socket:
    try:
        await loop.sock_connect(made, address)
    except BaseException:
        made.close()
        raise
    return made


async def _joined(loop: asyncio.AbstractEventLoop, near: socket.socket, connect: _Connect) -> None:
    """Carries bytes both ways until both sides have ended; a broken side breaks the other one too."""
    with near:
        try:
            far = await connect()
        except OSError:
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            return
        with far:
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(_carry(loop, near, far))
                    both.create_task(_carry(loop, far, near))
            except* OSError:
                for one in (near, far):
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


async def _carry(loop: asyncio.AbstractEventLoop, source: socket.socket, sink: socket.socket) -> None:
    while data := await loop.sock_recv(source, _CHUNK):
        await loop.sock_sendall(sink, data)
    sink.shutdown(socket.SHUT_WR)


async def _readable(loop: asyncio.AbstractEventLoop, one: socket.socket) -> None:
    ready = asyncio.Event()
    loop.add_reader(one, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(one)
