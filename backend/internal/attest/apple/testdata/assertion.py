"""Makes assertion.json with Python's cryptography and a few bytes of CBOR: python3 assertion.py > assertion.json"""
import base64, hashlib, json
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

app, challenge, counter = "ABCDE12345.com.example.app", "an independent challenge", 7
key = ec.generate_private_key(ec.SECP256R1())


def head(major, n):
    return bytes([major << 5 | n]) if n < 24 else bytes([major << 5 | 24, n])


def text(s):
    return head(3, len(s)) + s.encode()


def data(b):
    return head(2, len(b)) + b


def assertion(extensions):
    auth = hashlib.sha256(app.encode()).digest() + b"\x40" + counter.to_bytes(4, "big") + extensions
    nonce = hashlib.sha256(auth + hashlib.sha256(challenge.encode()).digest()).digest()
    signature = key.sign(nonce, ec.ECDSA(hashes.SHA256()))
    return head(5, 2) + text("signature") + data(signature) + text("authenticatorData") + data(auth)


category = head(5, 2) + text("apple_bundle_version_01") + text("42")
category += text("apple_validation_category_01") + data((4).to_bytes(4, "little"))
public = key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
print(json.dumps({"app": app, "challenge": challenge, "counter": counter} | {
    name: base64.b64encode(b).decode()
    for name, b in {"public": public, "without": assertion(b""), "with": assertion(category)}.items()}, indent=1))
