"""The kinds of edits: each is an `EditForm` with a literal ``kind``, in any module here.

The API and its document, the client and the command line take every kind that is here. A program
adds its own by appending a folder to ``__path__`` before it imports `headlight.schemas.edits`.
"""
