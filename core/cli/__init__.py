"""The same runs without a browser.

May import everything of core but figures. What a page needs too belongs below.
"""
