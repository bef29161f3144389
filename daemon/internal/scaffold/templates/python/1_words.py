import base64
import collections
import functools
import hashlib
#: if assistant
import http.client
#: end
import json
import os
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, Optional, Set, Tuple, Union


class GlassesError(Exception):
    """Every refusal. Branch on code; the text is for people.

    Codes of the glasses: bad_payload, unsupported, not_connected, hinge_closed, thermal_critical, paused,
    permission_denied, disabled_by_user, busy, timeout and platform_error; of the service: bad_frame and id_reused; of
    this module: not_configured, simulator_refused, transport_unavailable, refused, closed and media_lost. There may be
    new codes.

    With permission_denied and disabled_by_user part is camera, microphone or speech, and by permission or switch.
    """

    def __init__(self, code: str, message: str, part: str = "", by: str = ""):
        super().__init__(message)
        self.code = code
        self.message = message
        self.part = part
        self.by = by
        #: if assistant
        self.fix_hint = ""  # of ask: what to do next
        self.retry_after_ms = 0  # of ask: when to ask again; 0 if waiting does not help
        #: end


class Event:
    """An event from the glasses. data is set for frames of a stream."""

    def __init__(self, type: str, id: str, at: int, payload: Dict[str, Any], data: Optional[bytes] = None):
        self.type = type
        self.id = id
        self.at = at
        self.payload = payload
        self.data = data

    def __repr__(self) -> str:
        return "Event(%s, %s)" % (self.type, self.payload)


#: if camera
class Media:
    """A photo or a clip."""

    def __init__(self, data: bytes, described: Dict[str, Any]):
        self.data = data
        self.mime = described.get("mime", "")
        self.sha256 = described.get("sha256", "")
        self.width = described.get("width", 0)
        self.height = described.get("height", 0)
        self.duration_ms = described.get("durationMs", 0)


#: end
def _is_release(asked: bool) -> bool:
    # python -O and SERVICE_RELEASE=1 make a release build; nothing makes one a development build again.
    return asked or os.environ.get("SERVICE_RELEASE") == "1" or sys.flags.optimize > 0


def _target(transport: Optional[str], url: Optional[str], secret: Optional[str], release: bool) -> Tuple[str, str]:
    """Decides where to attach: never to a simulator in a release build, and only by the transport that was set."""
    release = _is_release(release)
    transport = transport or os.environ.get("SERVICE_GLASSES_TRANSPORT") or ("device" if release else "simulator")
    if transport == "device":
        raise GlassesError("transport_unavailable", "this version of the module has no transport to real glasses; "
                           "set SERVICE_GLASSES_TRANSPORT=simulator while developing")
    if transport != "simulator":
        raise GlassesError("not_configured", "SERVICE_GLASSES_TRANSPORT is %s, want simulator or device" % transport)
    if release:
        raise GlassesError("simulator_refused", "a release build does not attach to a simulator")
    url = url or os.environ.get("SERVICE_GLASSES_URL") or ""
    if not url.startswith(("ws://", "wss://")):
        raise GlassesError("not_configured", "SERVICE_GLASSES_URL is not the ws:// endpoint of a session; "
                           "startLocalSimulation and createSimulatorSession return one")
    return url, secret or _secret()


def _secret() -> str:
    path = os.environ.get("SERVICE_GLASSES_SECRET_FILE")
    if not path:
        raise GlassesError("not_configured", "SERVICE_GLASSES_SECRET_FILE does not name the file with the session's secret")
    try:
        with open(path, encoding="utf-8") as f:
            return f.read().strip()
    except OSError as e:
        raise GlassesError("not_configured", "reading the session's secret: %s" % e)


